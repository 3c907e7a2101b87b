"""Rules of a RayCluster's fabric: NICs, claimed GPUs and NCCL's profile, held to its pool."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.types import parse_quantity
from berth.components.core.words import counted
from berth.components.fabric.settings import Worker
from berth.components.hardware.machines import GIB_PROFILES, MACHINES
from berth.components.sharing import Pool, Pools


def nic_problem(worker: Worker, pools: Pools, path: Path) -> Problem | None:
    """Return a problem for NICs that the pool cannot have, at the path of the worker's settings."""
    message = _nic_problem(worker, pools[worker.pool])
    return Problem((*path, "nics"), message) if message else None


def nccl_problems(worker: Worker, pools: Pools, path: Path) -> Iterable[Problem]:
    """Yield settings with which NCCL would fail in the workers of a group."""
    pool = pools[worker.pool]
    if message := _profile_problem(worker.nccl.profile, worker, pool):
        yield Problem((*path, "nccl", "profile"), message)
    shared = worker.nccl.shared_memory
    if shared and parse_quantity(shared) > parse_quantity(worker.memory):
        yield Problem(
            (*path, "nccl", "sharedMemory"),
            f"{shared} is more than a worker's memory, {worker.memory}, of which /dev/shm is a part; lower it, or raise"
            " `worker.memory`",
        )


def _nic_problem(worker: Worker, pool: Pool) -> str:
    machine, most = pool.settings.machine, pool.settings.nics
    asks = f"a worker asks for {counted(worker.nics, 'NIC')}"
    if worker.nics and not most:
        remedy = f"take this line out: {machine.name} has no RDMA NICs"
        if machine.rdma:
            remedy = "set `rdma: managed` or `rdma: networks` there, or take this line out"
        return f"{asks}, but pool {pool.name!r} gives none to pods (rdma: none); {remedy}"
    if worker.nics > most:
        return f"{asks}, but a node of pool {pool.name!r} ({machine.name}) has {most}"
    if pool.settings.by_dra and worker.gpus and worker.nics not in (0, worker.gpus):
        return (
            f"{asks} beside {pool.counted(worker.gpus)} of pool {pool.name!r}, where"
            f" each claimed GPU comes with the NIC of its PCIe root; write {worker.gpus} or 0, or take this line out"
        )
    return ""


def _profile_problem(profile: str, worker: Worker, pool: Pool) -> str:
    if profile not in GIB_PROFILES:
        return ""
    name, tuned = pool.settings.machine_type, pool.settings.machine.series.nccl
    if tuned is None or tuned.name != profile:
        instead = tuned.name if tuned else "single-node"
        fitting = [other for other, machine in MACHINES.items() if machine.series.nccl == GIB_PROFILES[profile]]
        return (
            f"{profile} is tuned for {' and '.join(fitting)}, but pool {pool.name!r} is {name}; write {instead}, or"
            " take this line out"
        )
    if not worker.gpus:
        return f"{profile} has NCCL join GPUs, and a worker has none; take this line out"
    if not worker.nics:
        return (
            f"{profile} has NCCL use gIB over RDMA NICs, but a worker has none, and NCCL would find no network gIB;"
            " take this line out, or set `worker.nics`"
        )
    return ""


def alignment_warning(worker: Worker, pools: Pools, path: Path) -> Problem | None:
    """Return a warning for counted GPUs beside claimed NICs, which nothing brings together.

    The path is that of the worker's settings.

    Google documents RDMA for pods that take all GPUs and all NICs of a node ("Maximize GPU network
    bandwidth in Standard mode clusters",
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx).
    """
    pool = pools[worker.pool]
    most = pool.settings.nics
    whole = worker.gpus == pool.per_node and worker.nics == most
    if pool.settings.by_dra or not worker.gpus or not 0 < worker.nics <= most or whole:
        return None
    message = (
        f"a worker has {pool.counted(worker.gpus)} and {counted(worker.nics, 'NIC')} of a node's {pool.per_node} and"
        f" {most}: its GPUs and NICs may sit on different PCIe roots, and Google documents only workers with all of a"
        f" node's; `gpuAllocation: dra` on pool {pool.name!r} pairs them"
    )
    return Problem((*path, "nics"), message)


def resource_problem(given: str | None, pool: Pool, path: Path) -> Problem | None:
    """Return a problem for a worker's `gpuResource` on a pool whose GPUs are not counted."""
    if given is None or not pool.settings.by_dra:
        return None
    return Problem(
        (*path, "gpuResource"),
        f"pool {pool.name!r} has `gpuAllocation: dra`, where no node advertises {given} and workers claim their GPUs;"
        " take this line out",
    )
