"""Hardware table of machines.yaml, which says what each figure is: GPUs, series, machine types."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from berth.components.core import fast_yaml

CapacityKind = Literal["on-demand", "reservation", "flex-start", "spot"]
"""Origin of machines: the settings' `capacity.kind`."""

GpuNetwork = Literal["", "roce", "tcpxo", "tcpx"]
"""Network between GPUs of several nodes: RDMA over converged Ethernet, GPUDirect-TCPXO,
GPUDirect-TCPX, or none of their own."""

NETWORKS_WITHOUT_RDMA: Mapping[str, str] = {"tcpxo": "GPUDirect-TCPXO", "tcpx": "GPUDirect-TCPX"}
"""Names of the networks of GPUs that berth does not set up."""

LOCAL_SSD_GB = 375
"""Size of a Local SSD (https://docs.cloud.google.com/compute/docs/disks/local-ssd)."""

_ROW = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_ROW)
class Source:
    """Document that states a figure."""

    page: str
    link: str
    doubt: str = ""
    """The part that could not be verified; empty where the page was read."""


@dataclass(frozen=True, config=_ROW)
class Gpu:
    """Kind of GPU."""

    accelerator: str
    product: str
    quota: str
    memory_gib: int
    driver_name: str
    driver_memory_mib: int
    architecture: str
    compute: tuple[int, int]
    oldest_driver: int
    oldest_cuda: tuple[int, int]
    mig: Mapping[str, int]
    sources: Mapping[str, Source] = field(repr=False)
    own_quota: bool = False
    claims_from_zero: bool = False


NO_GPU = Gpu("", "", "", 0, "", 0, "", (0, 0), 0, (0, 0), {}, {})
"""GPU of machine types without GPUs."""


@dataclass(frozen=True, config=_ROW)
class NcclProfile:
    """Settings of NCCL for Google's plugin gIB on a series."""

    name: str
    """Value of `nccl.profile`."""
    tuner: str
    """File of the tuner's configuration in gIB's folder."""
    source: Source
    """Page of the settings."""


@dataclass(frozen=True, config=_ROW)
class Series:
    """Facts that machine types share: a3-highgpu-1g is of another series than a3-highgpu-8g."""

    name: str
    boot_disks: tuple[str, ...]
    sources: Mapping[str, Source] = field(repr=False)
    compact: bool = True
    compact_flex_start: bool = False
    sold: tuple[CapacityKind, ...] = ("on-demand", "reservation", "flex-start", "spot")
    gpu_network: GpuNetwork = ""
    gpu_nics: int = 0
    gpu_nic_gbps: int = 0
    nccl: NcclProfile | None = None
    gke_since: str = ""
    gke_driver_since: str = ""
    gke_rdma_since: str = ""
    arm64: bool = False
    local_ssd_gb: int = LOCAL_SSD_GB
    attaches: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    gpu_part: bool = False
    accelerator_topology: str = ""


UNKNOWN = Series("", (), {})
"""Series of machine types that the table lacks; berth has no figures of them."""


@dataclass(frozen=True, config=_ROW)
class Machine:
    """Machine type; one that the table lacks has 0 vCPUs and no memory."""

    name: str
    series: Series
    vcpus: int
    memory_gib: int
    gpus: int = 0
    gpu: Gpu = NO_GPU
    gpu_gib: int = 0
    local_ssds: int = 0
    local_ssd_choices: tuple[int, ...] = ()

    @property
    def family(self) -> str:
        """First part of the name: the value of GKE's label cloud.google.com/machine-family."""
        return self.name.split("-")[0]

    @property
    def known(self) -> bool:
        """Whether the table has it."""
        return self.series != UNKNOWN

    @property
    def rdma(self) -> bool:
        """Whether it has one RDMA NIC (RoCE) for each GPU, which GKE hands to pods by DRANET."""
        return self.series.gpu_network == "roce"


def mig_memory_gib(profile: str) -> int:
    """Return the memory in the name of a MIG profile: 23 for `1g.23gb`."""
    return int(profile.partition(".")[2].removesuffix("gb"))


def mig_slices(profile: str) -> int:
    """Return the compute slices in the name of a MIG profile: 3 for `3g.90gb`."""
    return int(profile.partition("g")[0])


_TABLE: dict[str, dict[str, Any]] = fast_yaml.load_beside(__file__)

GPUS = {name: Gpu(accelerator=name, **figures) for name, figures in _TABLE["gpus"].items()}
"""GPUs by GKE's name."""


def _machines_of(name: str, row: dict[str, Any]) -> Iterator[Machine]:
    """Yield the machine types of a series, from its row in the table."""
    listed = row.pop("machines", {})
    sizes = row.pop("sizes", {})
    with_local_ssds = row.pop("with_local_ssds", {})
    series = Series(name=name, **row)
    for machine, figures in listed.items():
        gpu = GPUS.get(figures.pop("gpu", ""), NO_GPU)
        gpu = _part(gpu, figures.get("gpu_gib", 0))
        yield Machine(name=machine, series=series, gpu=gpu, **figures)
    for family, memory_gib in sizes.items():
        for vcpus, gib in memory_gib.items():
            yield Machine(f"{family}-{vcpus}", series, vcpus, gib)
        for vcpus, count in with_local_ssds.get(family, {}).items():
            gib = memory_gib[vcpus]
            yield Machine(f"{family}-{vcpus}-lssd", series, vcpus, gib, local_ssds=count)


def _part(gpu: Gpu, memory_gib: int) -> Gpu:
    """Return a GPU with another memory, a part of it or an unknown one: neither has instances."""
    return replace(gpu, memory_gib=memory_gib, mig={}) if memory_gib else gpu


def _machines() -> Iterator[Machine]:
    for name, row in _TABLE["series"].items():
        yield from _machines_of(name, row)


MACHINES = {machine.name: machine for machine in _machines()}
"""Machine types that berth knows, by name."""


@cache
def machine_of(name: str, accelerator: str = "", gpus: int = 0, memory_gib: int = 0) -> Machine:
    """Return a machine type with the GPUs that settings or a plan give it.

    GPUs belong to most machine types: what is given counts for those to which Google attaches some,
    and for machine types and GPUs that the table lacks.

    Args:
        name: name of the machine type.
        accelerator: GKE's name for the GPUs that are given.
        gpus: number of GPUs that are given.
        memory_gib: memory of one GPU in GiB, where it isn't the table's.
    """
    machine = MACHINES.get(name) or Machine(name, UNKNOWN, 0, 0)
    if machine.gpus or not gpus:
        return machine
    gpu = GPUS.get(accelerator) or replace(NO_GPU, accelerator=accelerator, product=accelerator)
    return replace(machine, gpus=gpus, gpu=_part(gpu, memory_gib))


GIB_PROFILES: dict[str, NcclProfile] = {
    machine.series.nccl.name: machine.series.nccl
    for machine in MACHINES.values()
    if machine.series.nccl
}
"""NCCL's profiles for gIB, by name."""

GIB = "gib"
"""NCCL's profile of workers that take the environment of the node's own gIB."""

NCCL_PROFILES = (GIB, *GIB_PROFILES, "single-node", "none")
"""Values of `nccl.profile`: gIB's own environment, pinned ones, GPUs of one node, and nothing."""

RDMA_NICS = max(machine.series.gpu_nics for machine in MACHINES.values() if machine.rdma)
"""RDMA NICs of a node, and so subnetworks of an RDMA network."""
