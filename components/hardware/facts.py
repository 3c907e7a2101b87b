"""Types of the hardware table: sources, GPUs, series of machine types, machine types."""

from __future__ import annotations

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
    """Document that states a figure.

    Attributes:
        doubt: the part that could not be verified; empty where the page was read.
    """

    page: str
    link: str
    doubt: str = ""


@dataclass(frozen=True, config=_ROW)
class Gpu:
    """Kind of GPU.

    Attributes:
        accelerator: GKE's name (label cloud.google.com/gke-accelerator); empty for no GPU.
        quota: name in Google's quotas.
        driver_name: name that NVIDIA's driver reports.
        driver_memory_mib: memory that NVIDIA's driver reports.
        compute: compute capability, major and minor.
        oldest_driver: NVIDIA's oldest driver branch for it, such as 570 for R570.
        oldest_cuda: the oldest CUDA for it.
        mig: instances that one GPU holds, by MIG profile; empty without MIG.
        sources: pages of these figures, by attribute.
        own_quota: whether it has a quota of its own, in place of a family of the quota for all
            newer GPUs.
    """

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


NO_GPU = Gpu("", "", "", 0, "", 0, "", (0, 0), 0, (0, 0), {}, {})
"""GPU of machine types without GPUs."""


@dataclass(frozen=True, config=_ROW)
class NcclProfile:
    """Settings of NCCL for Google's plugin gIB on a series.

    Attributes:
        name: value of `nccl.profile`.
        tuner: file of the tuner's configuration in gIB's folder.
        source: page of the settings.
    """

    name: str
    tuner: str
    source: Source


@dataclass(frozen=True, config=_ROW)
class Series:
    """Facts that some machine types share: a3-highgpu-1g is of another series than a3-highgpu-8g.

    Attributes:
        boot_disks: boot disk types; berth's default first.
        sources: pages of these figures and of its machine types', by attribute.
        compact: whether compact placement exists.
        compact_flex_start: whether compact placement exists with flex-start.
        sold: kinds of capacity that Google sells.
        gpu_network: technology of the NICs that only the GPUs use.
        gpu_nics: number of those NICs in a node.
        gpu_nic_gbps: line rate of one of them in Gbit/s (10**9 bits).
        other_nics: number of other NICs: the primary one, and a second gVNIC where there is one.
        nccl: NCCL's settings for gIB; None without gIB.
        gke_since: the oldest GKE with these machines.
        gke_driver_since: the oldest GKE whose default driver knows their GPU, where that is a newer
            one.
        gke_rdma_since: the oldest GKE with GPUDirect RDMA on them.
    """

    name: str
    boot_disks: tuple[str, ...]
    sources: Mapping[str, Source] = field(repr=False)
    compact: bool = True
    compact_flex_start: bool = False
    sold: tuple[CapacityKind, ...] = ("on-demand", "reservation", "flex-start", "spot")
    gpu_network: GpuNetwork = ""
    gpu_nics: int = 0
    gpu_nic_gbps: int = 0
    other_nics: int = 1
    nccl: NcclProfile | None = None
    gke_since: str = ""
    gke_driver_since: str = ""
    gke_rdma_since: str = ""


@dataclass(frozen=True, config=_ROW)
class Machine:
    """Machine type.

    Attributes:
        local_ssds: Local SSDs that it always has, 375 GB each.
        local_ssd_choices: numbers of Local SSDs that it can have instead of none; empty where there
            is no choice.
    """

    name: str
    series: Series
    vcpus: int
    memory_gib: int
    gpus: int = 0
    gpu: Gpu = NO_GPU
    local_ssds: int = 0
    local_ssd_choices: tuple[int, ...] = ()

    @property
    def family(self) -> str:
        """First part of the name: the value of GKE's label cloud.google.com/machine-family."""
        return self.name.split("-")[0]

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
