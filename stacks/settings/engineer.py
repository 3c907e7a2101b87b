"""An engineer's own stack: a berth on an environment that another stack made."""

from __future__ import annotations

from stacks.settings.ray import RayShape
from stacks.settings.types import Name, NonEmpty


class EngineerSettings(RayShape):
    """One berth, on an environment. What is left out comes from the environment's `defaults`."""

    environment: NonEmpty
    """Stack of the environment: `lab`, or `organization/project/stack` for one of another project."""
    name: Name | None = None
    """The engineer's id. Default: the stack's name."""

    @property
    def shape(self) -> RayShape:
        """The RayCluster's part of these settings."""
        return RayShape.model_validate(self.model_dump(exclude={"environment", "name"}))
