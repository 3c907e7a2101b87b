"""An engineer's own stack: a berth on an environment that another stack made."""

from typing import Annotated, Literal

from pydantic import Field

from berth.components.core.types import Name, NonEmpty
from berth.components.gke import ExistingCluster
from berth.components.ray import BerthShape


class EngineerSettings(BerthShape):
    """Berth on an environment, whose `defaults` have the settings that are left out."""

    environment: Annotated[NonEmpty, Field(examples=["lab"])]
    """Stack of the environment: `lab`, or `organization/project/stack` of another project."""
    name: Annotated[Name | None, Field(examples=["alice"])] = None
    """Id of the engineer. Default: the stack's name."""
    part: Literal["isolation", "cluster"] | None = None
    """Half of the berth that this stack creates. `isolation`: the namespace with quota, policies
    and Roles, by an admin. `cluster`: the RayCluster, by the engineer with Role `berth-owner`.
    Default: both."""
    login: Annotated[ExistingCluster | None, Field(examples=[{"kubeconfig": "~/.kube/config"}])] = (
        None
    )
    """Kubeconfig of whoever runs Pulumi for `part: cluster`, which needs no access to the
    environment's state."""
