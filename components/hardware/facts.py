"""Types of the hardware table: sources, GPUs, series of machine types, machine types."""

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
    """GKE's name (label cloud.google.com/gke-accelerator); empty for no GPU."""
    product: str
    quota: str
    """Name in Google's quotas."""
    memory_gib: int
    driver_name: str
    """Name that NVIDIA's driver reports."""
    driver_memory_mib: int
    """Memory that NVIDIA's driver reports."""
    architecture: str
    compute: tuple[int, int]
    """Compute capability, major and minor."""
    oldest_driver: int
    """NVIDIA's oldest driver branch for it, such as 570 for R570."""
    oldest_cuda: tuple[int, int]
    """The oldest CUDA for it."""
    mig: Mapping[str, int]
    """Instances that one GPU holds, by MIG profile; empty without MIG."""
    sources: Mapping[str, Source] = field(repr=False)
    """Pages of these figures, by attribute."""
    own_quota: bool = False
    """Whether it has a quota of its own, in place of a family of the quota for all newer GPUs."""
    claims_from_zero: bool = False
    """Whether GKE's autoscaler knows it as a device to claim on a node that is not there yet."""


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
    """Boot disk types; berth's default first."""
    sources: Mapping[str, Source] = field(repr=False)
    """Pages of these figures and of its machine types', by attribute."""
    compact: bool = True
    """Whether compact placement exists."""
    compact_flex_start: bool = False
    """Whether compact placement exists with flex-start."""
    sold: tuple[CapacityKind, ...] = ("on-demand", "reservation", "flex-start", "spot")
    """Kinds of capacity that Google sells."""
    gpu_network: GpuNetwork = ""
    """Technology of the NICs that only the GPUs use."""
    gpu_nics: int = 0
    """Number of those NICs in a node."""
    gpu_nic_gbps: int = 0
    """Line rate of one of them in Gbit/s (10**9 bits)."""
    nccl: NcclProfile | None = None
    """NCCL's settings for gIB; None without gIB."""
    gke_since: str = ""
    """The oldest GKE with these machines."""
    gke_driver_since: str = ""
    """The oldest GKE whose default driver knows their GPU, where that is a newer one."""
    gke_rdma_since: str = ""
    """The oldest GKE with GPUDirect RDMA on them."""
    arm64: bool = False
    """Whether their processors are Arm's; GKE taints such nodes."""
    local_ssd_gb: int = LOCAL_SSD_GB
    """Size of one of their Local SSDs."""
    attaches: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Most vCPUs beside a number of GPUs that can be attached, by GKE's name of the GPU."""
    gpu_part: bool = False
    """Whether a node has a part of a GPU, which GKE alone serves and nobody shares further."""
    accelerator_topology: str = ""
    """NVLink's reach over nodes: the topology of the workload policy that places a pool of them."""


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
    """Memory of its part of a GPU; 0 for whole ones."""
    local_ssds: int = 0
    """Local SSDs that it always has."""
    local_ssd_choices: tuple[int, ...] = ()
    """Numbers of Local SSDs that it can have instead of none; empty where there is no choice."""

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
