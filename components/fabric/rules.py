"""Whether what a RayCluster asks of the fabric can be had of its pool: NICs, claimed GPUs, NCCL's profile."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.types import parse_quantity
from berth.components.fabric.workers import Cluster
from berth.components.hardware.machines import GIB_PROFILES, MACHINES
from berth.components.sharing import Pool, Pools


def fabric_problems(cluster: Cluster, pools: Pools, path: Path) -> Iterable[Problem]:
    """What can never be had of the fabric, and what NCCL would fail with."""
    pool, worker = pools[cluster.worker.pool], cluster.worker
    yield from _nic_problems(cluster, pool, (*path, "worker", "nics"))
    yield from _profile_problems(cluster, pool, (*path, "nccl", "profile"))
    shared = cluster.nccl.shared_memory
    if shared and parse_quantity(shared) > parse_quantity(worker.memory):
        yield Problem(
            (*path, "nccl", "sharedMemory"),
            f"{shared} is more than a worker's memory, {worker.memory}, of which /dev/shm is a part; lower it, or raise"
            " `worker.memory`",
        )


def _nic_problems(cluster: Cluster, pool: Pool, where: Path) -> Iterable[Problem]:
    worker, machine = cluster.worker, pool.settings.machine
    most = pool.settings.nics
    if worker.nics and not most:
        mend = (
            "set `rdma: managed` or `rdma: networks` there, or take this line out"
            if machine.rdma
            else f"take this line out: {machine.name} has no RDMA NICs"
        )
        yield Problem(
            where,
            f"a worker asks for {_counted(worker.nics)}, but pool {pool.name!r} gives none to pods (rdma: none); {mend}",
        )
    elif worker.nics > most:
        yield Problem(
            where,
            f"a worker asks for {_counted(worker.nics)}, but a node of pool {pool.name!r} ({machine.name}) has {most}",
        )
    elif pool.settings.by_dra and worker.gpus and worker.nics not in (0, worker.gpus):
        yield Problem(
            where,
            f"a worker asks for {_counted(worker.nics)} beside {pool.counted(worker.gpus)} of pool {pool.name!r}, where each claimed GPU"
            f" comes with the NIC of its PCIe root; write {worker.gpus} or 0, or take this line out",
        )


def _profile_problems(cluster: Cluster, pool: Pool, where: Path) -> Iterable[Problem]:
    worker, profile = cluster.worker, cluster.nccl.profile
    if profile not in GIB_PROFILES:
        return
    name, tuned = pool.settings.machine_type, pool.settings.machine.series.nccl
    if tuned is None or tuned.name != profile:
        instead = tuned.name if tuned else "single-node"
        tuned_for = " and ".join(
            other for other, machine in MACHINES.items() if machine.series.nccl == GIB_PROFILES[profile]
        )
        yield Problem(
            where,
            f"{profile} is tuned for {tuned_for}, but pool {pool.name!r} is {name}; write {instead}, or take this line out",
        )
    elif not worker.gpus:
        yield Problem(where, f"{profile} has NCCL join GPUs, and a worker has none; take this line out")
    elif not worker.nics:
        yield Problem(
            where,
            f"{profile} has NCCL use gIB over RDMA NICs, but a worker has none, and NCCL would find no network gIB; take this line out,"
            " or set `worker.nics`",
        )


def alignment_warning(cluster: Cluster, pools: Pools, path: Path) -> Problem | None:
    """A warning where GPUs are counted and NICs are claimed, so that nothing brings the two together.

    Google documents RDMA for pods that take all GPUs and all NICs of a node ("Maximize GPU network bandwidth in Standard mode
    clusters", https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx).
    """
    pool, worker = pools[cluster.worker.pool], cluster.worker
    most = pool.settings.nics
    if pool.settings.by_dra or not worker.gpus or not 0 < worker.nics <= most:
        return None
    if worker.gpus == pool.per_node and worker.nics == most:
        return None
    message = (
        f"a worker has {pool.counted(worker.gpus)} and {_counted(worker.nics)} of a node's {pool.per_node} and {most}: its GPUs and NICs"
        f" may sit on different PCIe roots, and Google documents only workers with all of a node's; `gpuAllocation: dra` on pool"
        f" {pool.name!r} pairs them"
    )
    return Problem((*path, "worker", "nics"), message)


def resource_problem(given: str | None, pool: Pool, path: Path) -> Problem | None:
    """A resource that is named where GPUs are not counted.

    Args:
        given: the worker's `gpuResource` as it was written, None where it was not.
        pool: the worker's pool.
        path: the RayCluster's.
    """
    if given is None or not pool.settings.by_dra:
        return None
    return Problem(
        (*path, "worker", "gpuResource"),
        f"pool {pool.name!r} has `gpuAllocation: dra`, where no node advertises {given} and workers claim their GPUs; take this line out",
    )


def _counted(nics: int) -> str:
    return "1 NIC" if nics == 1 else f"{nics} NICs"
