"""Groups of workers of a live RayCluster: pools, workers and GPUs. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_of_pod, replicas_of
from berth.components.cluster.pods import why_not_ready
from berth.components.hardware.names import POOL_LABEL


@dataclass(frozen=True)
class Group:
    """A group of workers of a berth or a named cluster."""

    name: str
    pool: str
    workers_ready: int
    workers_desired: int
    gpus: int
    """GPUs, or shares of them, that its workers request."""


def live_groups(cluster: Object, pods: Iterable[Object], *, suspended: bool) -> list[Group]:
    """Return the groups of a RayCluster, with the ready workers among some pods."""
    key = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    ready: Counter[str] = Counter()
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if (pod["metadata"]["namespace"], labels.get("ray.io/cluster")) == key and why_not_ready(pod) is None:
            ready[labels.get("ray.io/group", "")] += 1
    return [
        Group(
            name=group["groupName"],
            pool=_pool_of(group),
            workers_ready=ready[group["groupName"]],
            workers_desired=0 if suspended else replicas_of(group),
            gpus=replicas_of(group) * gpus_of_pod(group["template"]),
        )
        for group in cluster["spec"]["workerGroupSpecs"]
    ]


def pools_of(spec: Object) -> str:
    """Return the node pools of the workers of a RayCluster's spec."""
    return ", ".join(dict.fromkeys(map(_pool_of, spec["workerGroupSpecs"])))


def _pool_of(group: Object) -> str:
    return str(group["template"]["spec"]["nodeSelector"][POOL_LABEL])
