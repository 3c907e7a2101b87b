"""An engineer's own stack: a berth on an environment that another stack made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from berth.components.core.types import Name, NonEmpty
from berth.components.ray import RayShape


class EngineerSettings(RayShape):
    """Berth on an environment, whose `defaults` have the settings that are left out."""

    environment: Annotated[NonEmpty, Field(examples=["lab"])]
    """Stack of the environment: `lab`, or `organization/project/stack` of another project."""
    name: Annotated[Name | None, Field(examples=["alice"])] = None
    """Id of the engineer. Default: the stack's name."""

    @property
    def shape(self) -> RayShape:
        """Settings of the RayCluster."""
        return RayShape.model_validate(self.model_dump(exclude={"environment", "name"}, exclude_unset=True))
