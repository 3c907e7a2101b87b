"""Demands of RayClusters on node pools: requests of their pods, and the room on a node."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import Name, parse_quantity
from berth.components.hardware.allocatable import GIB
from berth.components.isolation import MOST_DISK
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.pod_template.sidecars import requests_of_sidecars
from berth.components.ray.pods import RAY_HEAD, RAY_WORKER
from berth.components.ray.storage.volumes import mounts_buckets
from berth.components.sharing import Pool, Pools

_UNKNOWN = Decimal("Infinity")


class Demand(Settings):
    """Demand of one RayCluster on one pool at the start, as sums over its pods."""

    owner: str
    """Owner of the RayCluster: `alice`."""
    pool: Name
    gpus: int
    """GPUs, or shares on a pool that shares them."""
    nics: int = 0
    """RDMA NICs."""
    cores: Decimal
    memory_gib: Decimal
    pods: Annotated[int, Field(exclude=True)] = 0
    """Pods; not in the contract, which an older berth of an engineer reads."""


@dataclass(frozen=True)
class NodeShare:
    """Cores and memory of a node: those that a pod requests, or those that pods may have.

    Attributes:
        cores: number of cores.
        memory: bytes.
    """

    cores: Decimal
    memory: Decimal


def request_of(pod: Head | WorkerGroup, cluster: RayClusterSettings) -> NodeShare:
    """Return what a pod of a RayCluster requests, with its sidecars."""
    ray = RAY_WORKER if isinstance(pod, WorkerGroup) else RAY_HEAD
    cores = parse_quantity(pod.cpu) + requests_of_sidecars(pod.pod_template, ray, "cpu")
    memory = parse_quantity(pod.memory) + requests_of_sidecars(pod.pod_template, ray, "memory")
    if mounts_buckets(cluster.volumes):
        cores += parse_quantity(cluster.gcs_fuse.cpu)
        memory += parse_quantity(cluster.gcs_fuse.memory)
    return NodeShare(cores, memory)


def room_on_a_node(pool: Pool) -> NodeShare:
    """Return what a node of a pool offers to pods, the memory in whole tenths of a GiB.

    Both are infinite where nobody says how large a node is.
    """
    offered = pool.settings.for_pods
    if offered is None:
        return NodeShare(_UNKNOWN, _UNKNOWN)
    tenths_of_a_gib = offered.memory * 10 // GIB
    return NodeShare(Decimal(offered.cpu_millis) / 1000, Decimal(tenths_of_a_gib) / 10 * GIB)


def disk_of_a_node(pool: Pool, *, created: bool) -> Decimal | None:
    """Return the bytes of its disk that a node of a pool leaves to pods; None where nobody says.

    Args:
        pool: the pool.
        created: whether berth creates the pool; of an existing one it knows the machine type only.
    """
    offered = pool.settings.for_pods
    if not created or offered is None or not offered.storage:
        return None
    return Decimal(offered.storage)


def disk_of_a_container(
    written: str | None, cluster: RayClusterSettings, pools: Pools, *, created: bool
) -> str:
    """Return the most disk of its node that a container of a berth uses, as a quantity.

    Args:
        written: the quantity in the settings of isolation.
        cluster: the berth's RayCluster.
        pools: pools of the environment.
        created: whether berth creates the pools.
    """
    if written:
        return written
    most = parse_quantity(MOST_DISK)
    names = {cluster.head.pool, *cluster.pools}
    disks = [disk_of_a_node(pools[name], created=created) for name in names]
    largest = max(most if disk is None else disk for disk in disks)
    return MOST_DISK if largest >= most else f"{int(largest / GIB)}Gi"


def demands_of(cluster: RayClusterSettings) -> list[Demand]:
    """Return the demands of a cluster on its pools at the start."""
    of_workers = [
        _demand(cluster, group, count=group.at_start, nics=group.nics) for group in cluster.groups
    ]
    return [*of_workers, _demand(cluster, cluster.head, count=1, nics=0)]


def _demand(
    cluster: RayClusterSettings, pod: Head | WorkerGroup, *, count: int, nics: int
) -> Demand:
    request = request_of(pod, cluster)
    return Demand(
        owner=cluster.name,
        pool=pod.pool,
        gpus=pod.gpus * count,
        nics=nics * count,
        cores=request.cores * count,
        memory_gib=request.memory * count / GIB,
        pods=count,
    )
