"""Rules of the GPUs of a group of workers: what its pool advertises, and how many there are."""

from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.core.types import parse_quantity
from berth.components.core.words import counted
from berth.components.hardware.allocatable import GIB
from berth.components.hardware.machines import NETWORKS_WITHOUT_RDMA
from berth.components.ray.numbers import decimal_text
from berth.components.ray.placed import PlacedGroup
from berth.components.ray.settings import BerthShape, WorkerGroupShape

GPU_REQUESTS = Rules[PlacedGroup](BerthShape)
"""Rules of the requests for GPUs of a group; their places begin at the RayCluster's settings."""

GROUP_GPUS = Rules[PlacedGroup](WorkerGroupShape)
"""Rules of a group's settings of GPUs; their places begin at the group's settings."""


@GPU_REQUESTS.problem(
    "worker.gpus",
    "worker.gpuResource",
    "workers",
    "workerGroups.*.gpus",
    "workerGroups.*.gpuResource",
    "workerGroups.*.workers",
)
def gpus_that_the_pool_does_not_have(placed: PlacedGroup) -> Iterator[Breach]:
    """Nodes of the pool have the GPUs that a worker asks for, and the pool those of all workers.

    The cluster autoscaler counts the accelerators of a future node (sharing/rules/autoscaler.py
    names the source).
    """
    group = placed.group
    pool = placed.pool
    machine = placed.machine
    asked = pool.counted(group.gpus)
    at_gpus = (*group.settings_path, "gpus")
    if group.gpus and pool.offer and group.gpu_resource != pool.offer.resource:
        yield Breach(
            f"pool {pool.name!r} does not advertise {group.gpu_resource!r}, but"
            f" {pool.offer.resource}; take this line out to ask for what it has",
            at=(*group.settings_path, "gpuResource"),
        )
    elif group.gpus > pool.per_node:
        on_a_node = pool.counted(pool.per_node) if pool.shared else str(pool.per_node or "none")
        yield Breach(
            f"a worker asks for {asked}, but a node of pool {pool.name!r} ({machine.name}) has"
            f" {on_a_node}",
            at=at_gpus,
        )
    elif group.gpus > 1 and pool.profile.facts.one_each:
        yield Breach(
            f"a worker asks for {group.gpus} shares of pool {pool.name!r}, whose profile refuses"
            f" more than one a pod ({pool.profile.facts.one_each}); ask for 1, or for whole GPUs of"
            " a pool that does not share them",
            at=at_gpus,
        )
    elif group.gpus > machine.gpus and pool.grows_from_zero:
        yield Breach(
            f"a worker asks for {asked}, and GKE's cluster autoscaler takes a node that is not"
            f" there yet for its {counted(machine.gpus, 'whole GPU')}: it would never add the"
            f" first one; ask for {machine.gpus} at most, or write nodes: {{min: 1, max:"
            f" {pool.settings.nodes_at_most}}} for pool {pool.name!r}",
            at=at_gpus,
        )
    elif group.at_most * group.gpus > pool.at_most:
        yield Breach(
            f"{group.at_most} workers of {asked} are {group.at_most * group.gpus}, but pool"
            f" {pool.name!r} has {pool.counted(pool.at_most)} ({pool.made_of})",
            at=group.workers_path,
        )


@GROUP_GPUS.warning("gpuMemory")
def shares_with_too_little_memory(placed: PlacedGroup) -> str | None:
    """A share of a GPU has the memory that the worker needs."""
    group = placed.group
    pool = placed.pool
    if not group.gpu_memory or not pool.offer:
        return None
    if parse_quantity(group.gpu_memory) <= pool.offer.memory_gib * GIB:
        return None
    return (
        f"a worker needs {group.gpu_memory} of GPU memory, but a {pool.unit} of pool"
        f" {pool.name!r} ({placed.machine.gpu.product}) is"
        f" {decimal_text(round(pool.offer.memory_gib, 1))}Gi{pool.profile.facts.memory_note}"
    )


@GROUP_GPUS.warning("pool")
def whole_nodes_joined_by_tcp(placed: PlacedGroup) -> str | None:
    """NCCL joins GPUs of several nodes by TCP where nothing sets up the network of their own."""
    group = placed.group
    pool = placed.pool
    whole_nodes = pool.per_node and group.gpus == pool.per_node and group.at_most > 1
    network = placed.machine.series.gpu_network
    if not whole_nodes or not network or pool.settings.rdma != "none":
        return None
    name = NETWORKS_WITHOUT_RDMA.get(network)
    why = f"berth does not set {name} up" if name else "the pool has `rdma: none`"
    way = (
        "take machines with RDMA NICs, such as a3-ultragpu-8g with `rdma: networks`"
        if name
        else f"write `rdma: networks` for pool {pool.name!r}"
    )
    return (
        f"NCCL joins {group.at_most} workers on whole nodes ({placed.machine.name}) by plain TCP,"
        f" since {why}; for work that spans them {way}"
    )


@GROUP_GPUS.warning("rayGpus")
def more_gpus_for_ray_than_there_are(placed: PlacedGroup) -> str | None:
    """Ray hands out as many GPUs of a worker as its pod has."""
    group = placed.group
    if group.ray_gpus is None or group.ray_gpus <= group.gpus:
        return None
    in_the_pod = placed.pool.counted(group.gpus) if group.gpus else "none"
    return (
        f"Ray hands out {group.ray_gpus} GPUs of a worker that has {in_the_pod}: a task that is"
        " given one of the others finds none; take `rayGpus` out for as many as there are"
    )
