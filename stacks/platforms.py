"""What an environment stands on: a cluster that can be reached, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi


@dataclass(frozen=True)
class Platform:
    """A cluster on which an environment's operators and RayClusters go.

    Attributes:
        kubeconfig: as text; secret.
        cluster_id: the same for the cluster's whole life: with another one, all that is on it is made anew.
        ready: resources that must be there before anything goes onto the cluster, and leave it after that.
    """

    kubeconfig: pulumi.Output[str]
    cluster_id: pulumi.Input[str]
    ready: Sequence[pulumi.Resource] = ()
