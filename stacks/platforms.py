"""Platform of an environment: a cluster that can be reached, whether berth created it or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi


@dataclass(frozen=True)
class Platform:
    """Cluster for an environment's operators and RayClusters.

    Attributes:
        kubeconfig: kubeconfig as text; secret.
        cluster_id: id for the cluster's whole life; another id recreates everything on the cluster.
        ready: resources that come before anything on the cluster, and go after it.
    """

    kubeconfig: pulumi.Output[str]
    cluster_id: pulumi.Input[str]
    ready: Sequence[pulumi.Resource] = ()
