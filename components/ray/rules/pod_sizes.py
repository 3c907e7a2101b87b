"""Rules of cores and memory of head and workers, held to a node and to what Ray itself uses."""

from decimal import Decimal

from berth.components.core.rules import Rules
from berth.components.core.types import parse_quantity
from berth.components.hardware.allocatable import GIB
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.demand import request_of, room_on_a_node
from berth.components.ray.numbers import decimal_text
from berth.components.ray.placed import PlacedGroup, PlacedPod
from berth.components.ray.settings import HeadShape, WorkerGroupShape

_LEAST_OF_A_HEAD = GIB
_LEAST_OF_A_WORKER = GIB // 2

PODS = Rules[PlacedPod](HeadShape)
"""Rules of a head or worker; both have the settings that the places name."""

WORKERS = Rules[PlacedGroup](WorkerGroupShape)
"""Rules of the size of a group's workers."""

HEAD_SIZES = Rules[RayClusterSettings](HeadShape)
"""Rules of the size of a head."""


@PODS.problem("cpu")
def more_cores_than_a_node_has(placed: PlacedPod) -> str | None:
    """A node offers the cores that a pod and its sidecars request."""
    request = request_of(placed.pod, placed.cluster)
    room = room_on_a_node(placed.pool)
    if request.cores <= room.cores:
        return None
    machine = placed.pool.settings.machine
    sidecars = _beside(request.cores - parse_quantity(placed.pod.cpu))
    of_all = f" of its {machine.vcpus}: GKE keeps the rest" if machine.known else ""
    return (
        f"a {placed.role} asks for {placed.pod.cpu} cores{sidecars}, but {placed.node} offers"
        f" {decimal_text(room.cores)}{of_all}"
    )


@PODS.problem("memory")
def more_memory_than_a_node_has(placed: PlacedPod) -> str | None:
    """A node offers the memory that a pod and its sidecars request."""
    request = request_of(placed.pod, placed.cluster)
    room = room_on_a_node(placed.pool)
    if request.memory <= room.memory:
        return None
    machine = placed.pool.settings.machine
    sidecars = _beside((request.memory - parse_quantity(placed.pod.memory)) / GIB, "Gi")
    of_all = f" of its {machine.memory_gib}Gi: GKE keeps the rest" if machine.known else ""
    return (
        f"a {placed.role} asks for {placed.pod.memory} of memory{sidecars}, but {placed.node}"
        f" offers {decimal_text(room.memory / GIB)}Gi{of_all}"
    )


@WORKERS.problem("cpuLimit")
def limit_below_the_request(placed: PlacedGroup) -> str | None:
    """Kubernetes refuses a limit below the request."""
    group = placed.group
    if parse_quantity(group.cpu) <= parse_quantity(group.cpu_limit):
        return None
    return (
        f"{group.cpu_limit} is less than `cpu`, {group.cpu}, and Kubernetes refuses a limit below"
        " the request; raise it, or take this line out"
    )


@WORKERS.warning("cpuLimit")
def limit_above_the_machine(placed: PlacedGroup) -> str | None:
    """A limit above what the machine has holds nothing back."""
    limit = placed.group.cpu_limit
    machine = placed.machine
    if not machine.known or parse_quantity(limit) <= machine.vcpus:
        return None
    return (
        f"is {limit}, and {machine.name} has {machine.vcpus} cores, so that the limit holds nothing"
        " back; write a lower one"
    )


@WORKERS.warning("memory")
def worker_without_memory_for_tasks(placed: PlacedGroup) -> str | None:
    """Ray's own processes leave a worker memory for tasks and its object store.

    Source: memory cgroups of idle pods on the lab's real node, Ray 2.60: a worker uses 265 MiB. A
    worker of 256Mi ends with "minimum allowed is 78643200 bytes" for its object store, of which
    Ray takes 30 % of what is free (ray/_private/services.py, determine_plasma_store_config).
    """
    if parse_quantity(placed.group.memory) >= _LEAST_OF_A_WORKER:
        return None
    return (
        f"is {placed.group.memory}; Ray's own processes use 0.3Gi of a worker and 0.1Gi for each"
        " task's process, and do not start where too little is left for the object store; write"
        " 1Gi or more"
    )


@HEAD_SIZES.warning("memory")
def head_without_memory_for_ray(cluster: RayClusterSettings) -> str | None:
    """A head has the memory that Ray's own processes use.

    Source: memory cgroups of idle pods on the lab's real node, Ray 2.60: a head uses 865 to 906
    MiB, and one of 500Mi is killed for memory again and again.
    """
    if parse_quantity(cluster.head.memory) >= _LEAST_OF_A_HEAD:
        return None
    return (
        f"is {cluster.head.memory}, and Ray's own processes use 0.9Gi of a head before any work: it"
        " would be killed for memory again and again; write 2Gi or more"
    )


def _beside(amount: Decimal, unit: str = "") -> str:
    return f" and its sidecars for {decimal_text(amount)}{unit}" if amount else ""
