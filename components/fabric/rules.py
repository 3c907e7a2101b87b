"""Rules of a worker's fabric: its NICs, its claimed GPUs and NCCL's profile, held to its pool."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.rules import Rules
from berth.components.core.types import parse_quantity
from berth.components.core.words import counted, names_in_words
from berth.components.fabric.settings import NcclShape, Worker, WorkerDevices
from berth.components.hardware.machines import GIB_PROFILES, MACHINES, Machine
from berth.components.sharing import Pool


@dataclass(frozen=True)
class WorkerOnPool:
    """A worker, and the pool that its pod runs on."""

    worker: Worker
    pool: Pool

    @property
    def machine(self) -> Machine:
        """Machine type of the pool's nodes."""
        return self.pool.settings.machine

    @property
    def nics_of_node(self) -> int:
        """Number of RDMA NICs of a node that pods can have."""
        return self.pool.settings.nics

    @property
    def gpus_in_words(self) -> str:
        """The worker's GPUs in words: `2 GPUs`."""
        return self.pool.counted(self.worker.gpus)

    @property
    def nics_in_words(self) -> str:
        """The worker's NICs in words: `2 NICs`."""
        return counted(self.worker.nics, "NIC")


@dataclass(frozen=True)
class GpuName:
    """Resource name that a worker's settings give its GPUs, and the worker's pool."""

    name: str | None
    pool: Pool


NICS = Rules[WorkerOnPool](WorkerDevices)
"""Rules of a worker's NICs."""

NCCL = Rules[WorkerOnPool](NcclShape)
"""Rules of NCCL's settings for one worker."""

GPU_NAMES = Rules[GpuName](WorkerDevices)
"""Rules of the name under which a worker asks for GPUs."""


@NICS.problem("nics")
def nics_that_the_pool_does_not_have(subject: WorkerOnPool) -> str | None:
    """A worker's NICs are among those of a node; with claimed GPUs each comes with its GPU."""
    worker = subject.worker
    pool = subject.pool
    if not worker.nics:
        return None
    if not subject.nics_of_node:
        remedy = (
            "set `rdma: managed` or `rdma: networks` there, or take this line out"
            if subject.machine.rdma
            else f"take this line out: {subject.machine.name} has no RDMA NICs"
        )
        return (
            f"a worker asks for {subject.nics_in_words}, but pool {pool.name!r} gives none to pods"
            f" (rdma: none); {remedy}"
        )
    if worker.nics > subject.nics_of_node:
        return (
            f"a worker asks for {subject.nics_in_words}, but a node of pool {pool.name!r}"
            f" ({subject.machine.name}) has {subject.nics_of_node}"
        )
    if pool.settings.by_dra and worker.gpus and worker.nics != worker.gpus:
        return (
            f"a worker asks for {subject.nics_in_words} beside {subject.gpus_in_words} of pool"
            f" {pool.name!r}, where each claimed GPU comes with the NIC of its PCIe root; write"
            f" {worker.gpus} or 0, or take this line out"
        )
    return None


@NICS.warning("nics")
def nics_on_other_pcie_roots(subject: WorkerOnPool) -> str | None:
    """GPUs and NICs that are neither all of a node nor paired by claims may be far apart."""
    worker = subject.worker
    pool = subject.pool
    whole_node = worker.gpus == pool.per_node and worker.nics == subject.nics_of_node
    some_nics = 0 < worker.nics <= subject.nics_of_node
    if whole_node or not some_nics or not worker.gpus or pool.settings.by_dra:
        return None
    return (
        f"a worker has {subject.gpus_in_words} and {subject.nics_in_words} of a node's"
        f" {pool.per_node} and {subject.nics_of_node}: its GPUs and NICs may sit on different PCIe"
        " roots, and Google documents only workers with all of a node's; `gpuAllocation: dra` on"
        f" pool {pool.name!r} pairs them"
    )


@NCCL.problem("profile")
def profile_of_gib_that_does_not_fit(subject: WorkerOnPool) -> str | None:
    """A pinned profile of gIB is tuned for some machine types, and joins GPUs over RDMA NICs."""
    worker = subject.worker
    profile = worker.nccl.profile
    if profile not in GIB_PROFILES:
        return None
    of_machine = subject.machine.series.nccl
    if of_machine is None or of_machine.name != profile:
        instead = of_machine.name if of_machine else "single-node"
        return (
            f"{profile} is tuned for {names_in_words(_machines_of(profile), 'and')}, but pool"
            f" {subject.pool.name!r} is {subject.machine.name}; write {instead}, or take this line"
            " out"
        )
    if not worker.gpus:
        return f"{profile} has NCCL join GPUs, and a worker has none; take this line out"
    if not worker.nics:
        return (
            f"{profile} has NCCL use gIB over RDMA NICs, but a worker has none, and NCCL would find"
            " no network gIB; take this line out, or set `worker.nics`"
        )
    return None


@NCCL.problem("sharedMemory")
def more_shared_memory_than_memory(subject: WorkerOnPool) -> str | None:
    """Shared memory is a part of the worker's memory."""
    memory = subject.worker.memory
    shared = subject.worker.nccl.shared_memory
    if shared is None or parse_quantity(shared) <= parse_quantity(memory):
        return None
    return (
        f"{shared} is more than a worker's memory, {memory}, of which /dev/shm is a part; lower it,"
        " or raise `worker.memory`"
    )


@GPU_NAMES.problem("gpuResource")
def name_of_gpus_that_are_claimed(subject: GpuName) -> str | None:
    """No node advertises GPUs that workers claim."""
    if not subject.name or not subject.pool.settings.by_dra:
        return None
    return (
        f"pool {subject.pool.name!r} has `gpuAllocation: dra`, where no node advertises"
        f" {subject.name} and workers claim their GPUs; take this line out"
    )


def _machines_of(profile: str) -> Iterator[str]:
    """Yield the machine types that a profile of gIB is tuned for."""
    for name, machine in MACHINES.items():
        if machine.series.nccl == GIB_PROFILES[profile]:
            yield name


def nic_problems(worker: Worker, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return the problems of the NICs of a worker whose settings are at a path."""
    return NICS.problems(WorkerOnPool(worker, pool), path)


def nic_warnings(worker: Worker, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return warnings about the NICs of a worker whose settings are at a path."""
    return NICS.warnings(WorkerOnPool(worker, pool), path)


def nccl_problems(worker: Worker, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return the problems of NCCL's settings for a worker of a RayCluster, which is at a path."""
    return NCCL.problems(WorkerOnPool(worker, pool), (*path, "nccl"))


def gpu_name_problems(name: str | None, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return the problems of the resource name of GPUs of a worker whose settings are at a path."""
    return GPU_NAMES.problems(GpuName(name, pool), path)
