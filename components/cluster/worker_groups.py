"""Groups of workers of a RayCluster, as KubeRay reads them."""

from collections.abc import Mapping
from typing import Any


def replicas_of(group: Mapping[str, Any]) -> int:
    """Return the number of workers that a group should have now: as set, and never below its least.

    Source: kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
    GetWorkerGroupDesiredReplicas. Workers above the maximum run on until Ray's autoscaler ends
    them.
    """
    replicas = max(int(group.get("replicas") or 0), int(group.get("minReplicas") or 0))
    return replicas * int(group.get("numOfHosts") or 1)
