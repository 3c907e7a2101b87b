"""Fields of a RayCluster's manifest, which berth writes and the API server returns. Pure."""

from collections.abc import Mapping
from typing import Any, TypedDict

from berth.components.cluster.api import Object
from berth.components.hardware.names import POOL_LABEL


class RayGroup(TypedDict, total=False):
    """Group of a RayCluster: its head, or workers of one kind."""

    groupName: str
    replicas: int
    minReplicas: int
    maxReplicas: int
    numOfHosts: int
    """Number of pods of a replica."""
    rayStartParams: dict[str, str]
    template: Object
    """Template of the group's pods."""


class UpgradeStrategy(TypedDict, total=False):
    """Strategy of KubeRay for running pods when their template changes."""

    type: str
    """`Recreate` or `None`."""


class RayClusterSpec(TypedDict, total=False):
    """Spec of a RayCluster (kuberay v1.6.2, ray-operator/apis/ray/v1/raycluster_types.go)."""

    suspend: bool
    enableInTreeAutoscaling: bool
    upgradeStrategy: UpgradeStrategy
    headGroupSpec: RayGroup
    workerGroupSpecs: list[RayGroup]


def spec_of(ray_cluster: Mapping[str, Any]) -> RayClusterSpec:
    """Return the spec of a RayCluster; an empty one without it."""
    empty: RayClusterSpec = {}
    return ray_cluster.get("spec") or empty


def head_group(ray_cluster: Mapping[str, Any]) -> RayGroup:
    """Return the group of a RayCluster's head; an empty one without it."""
    return spec_of(ray_cluster).get("headGroupSpec") or {}


def worker_groups(ray_cluster: Mapping[str, Any]) -> list[RayGroup]:
    """Return the groups of a RayCluster's workers."""
    return spec_of(ray_cluster).get("workerGroupSpecs") or []


def is_recreated(ray_cluster: Mapping[str, Any]) -> bool:
    """Return whether KubeRay recreates all pods of a RayCluster when their templates change."""
    strategy = spec_of(ray_cluster).get("upgradeStrategy") or {}
    return strategy.get("type") == "Recreate"


def is_suspended(ray_cluster: Mapping[str, Any]) -> bool:
    """Return whether a RayCluster should be suspended; its pods may still be terminating."""
    return bool(spec_of(ray_cluster).get("suspend"))


def replicas_of(group: RayGroup) -> int:
    """Return the number of workers that a group should have now: as set, and never below its least.

    Source: kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
    GetWorkerGroupDesiredReplicas. Workers above the maximum run on until Ray's autoscaler ends
    them.
    """
    replicas = max(int(group.get("replicas") or 0), int(group.get("minReplicas") or 0))
    return replicas * int(group.get("numOfHosts") or 1)


def as_it_runs(ray_cluster: Object, workers: Mapping[str, int]) -> Object:
    """Return a RayCluster whose groups have as many workers as run.

    While Ray's autoscaler scales, and after an update, which sets a number again, `replicas` is
    another one.

    Args:
        ray_cluster: manifest from the cluster.
        workers: number of pods by the group's name.
    """
    groups = [
        {**group, "replicas": workers.get(str(group.get("groupName")), 0)}
        | {"minReplicas": 0, "numOfHosts": 1}
        for group in worker_groups(ray_cluster)
    ]
    return {**ray_cluster, "spec": {**spec_of(ray_cluster), "workerGroupSpecs": groups}}


def pool_of(group: RayGroup) -> str:
    """Return the node pool that the pods of a group select; "" for none."""
    spec = (group.get("template") or {}).get("spec") or {}
    return str((spec.get("nodeSelector") or {}).get(POOL_LABEL, ""))
