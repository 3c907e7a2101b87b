"""Types of the hardware table, machines.yaml, which says what each of their figures is."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

CapacityKind = Literal["on-demand", "reservation", "flex-start", "spot"]
"""Origin of machines: the settings' `capacity.kind`."""

GpuNetwork = Literal["", "roce", "tcpxo", "tcpx"]
"""Network between GPUs of several nodes: RDMA over converged Ethernet, GPUDirect-TCPXO,
GPUDirect-TCPX, or none of their own."""

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
