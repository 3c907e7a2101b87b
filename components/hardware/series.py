"""What the machine types of a series have in common, each figure with the page that says it.

A series here is what differs in one of these facts: a3-highgpu-1g is of another than a3-highgpu-8g.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CapacityKind = Literal["on-demand", "reservation", "flex-start", "spot"]
"""Where machines can come from: the settings' `capacity.kind`."""

GpuNetwork = Literal["", "roce", "tcpxo", "tcpx"]
"""How GPUs of several nodes talk: RDMA over converged Ethernet, GPUDirect-TCPXO, GPUDirect-TCPX, or by no NICs of their own."""


@dataclass(frozen=True)
class Source:
    """Where a figure stands.

    Attributes:
        page: the document's name.
        link: its address.
        doubt: what could not be verified, "" where it was read on the page.
    """

    page: str
    link: str
    doubt: str = ""


_ACCELERATED = Source(
    "Accelerator-optimized machine family",
    "https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines",
)
_GENERAL = Source(
    "General-purpose machine family", "https://docs.cloud.google.com/compute/docs/general-purpose-machines"
)
_LOCAL_SSD = Source(
    "About Local SSD disks, Choose a valid number of Local SSD disks",
    "https://docs.cloud.google.com/compute/docs/disks/local-ssd",
)
_COMPACT = Source(
    "Define compact placement for GKE nodes",
    "https://docs.cloud.google.com/kubernetes-engine/docs/how-to/compact-placement",
)
_AI_CLUSTERS = Source(
    "Create a custom AI-optimized GKE cluster, Requirements",
    "https://docs.cloud.google.com/ai-hypercomputer/docs/create/gke-ai-hypercompute-custom",
)
_CONSUMPTION = Source(
    "AI Hypercomputer consumption options",
    "https://docs.cloud.google.com/ai-hypercomputer/docs/consumption-models",
)
_FLEX_START = Source(
    "About Flex-start VMs", "https://docs.cloud.google.com/compute/docs/instances/about-flex-start-vms"
)
_SMALL_A3 = Source(
    "Create an accelerator-optimized VM, Limitations of A3",
    "https://docs.cloud.google.com/compute/docs/gpus/create-gpu-vm-accelerator-optimized",
)
_GPU_NETWORK = Source(
    "GPU machine types, network bandwidth", "https://docs.cloud.google.com/compute/docs/gpus/gpu-network-bandwidth"
)
_DRIVERS = Source(
    "Install GPU drivers, minimum versions",
    "https://docs.cloud.google.com/compute/docs/gpus/install-drivers-gpu",
    doubt="the branches for H100, L4 and A100 could not be read there; A4's and A3 Ultra's were, on another page",
)
_CUDA = Source(
    "CUDA Toolkit release notes, GPU architectures",
    "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
    doubt="that a GPU's compute capability begins with this CUDA is in the notes of that release, which could not be read anew",
)
_DISKS = Source(
    "Choose a disk type, machine support",
    "https://docs.cloud.google.com/compute/docs/disks#machine_type_support",
    doubt="could not be read; C3 without pd-standard and the small A3 without hyperdisk-balanced were",
)
_BOOT_A4 = Source(
    _ACCELERATED.page,
    _ACCELERATED.link,
    doubt="that A4 boots from nothing else follows from the API's refusal of the other types, as users quote it",
)


@dataclass(frozen=True)
class Series:
    """Facts that some machine types share.

    Attributes:
        boot_disks: boot disk types that it takes; berth's default first.
        compact: compact placement can be asked for.
        compact_flex_start: with flex-start too.
        sold: kinds of capacity that it is sold in.
        gpu_network: the technology of the NICs that are for the GPUs alone.
        gpu_nics: how many of those a node has.
        gpu_nic_gbps: line rate of each, in Gbit/s (10**9 bits); 0 without any.
        other_nics: how many others: the primary one, and a second gVNIC where there is one.
        oldest_driver: NVIDIA's oldest driver branch for the GPU, as in R570; 0 without GPUs.
        oldest_cuda: the oldest CUDA for the GPU; (0, 0) without GPUs.
        sources: for each of these facts, and for `vcpus`, `memory_gib`, `gpus` and `gpu_memory_gib` of its machine types and
            `local_ssds`, the page.
    """

    boot_disks: tuple[str, ...]
    sources: Mapping[str, Source]
    compact: bool = True
    compact_flex_start: bool = False
    sold: tuple[CapacityKind, ...] = ("on-demand", "reservation", "flex-start", "spot")
    gpu_network: GpuNetwork = ""
    gpu_nics: int = 0
    gpu_nic_gbps: int = 0
    other_nics: int = 1
    oldest_driver: int = 0
    oldest_cuda: tuple[int, int] = (0, 0)


def _sources(base: Source, **special: Source) -> dict[str, Source]:
    """Sources of every fact: the series' own page, but for what another page says."""
    usual = {
        "local_ssd_choices": _LOCAL_SSD,
        **dict.fromkeys(("vcpus", "memory_gib", "gpus", "gpu_memory_gib"), base),
        "boot_disks": _DISKS,
        **dict.fromkeys(("gpu_network", "gpu_nics", "gpu_nic_gbps", "other_nics"), _GPU_NETWORK),
        **dict.fromkeys(("compact", "compact_flex_start"), _COMPACT),
        "local_ssds": _LOCAL_SSD,
        "sold": _FLEX_START,
        "oldest_driver": _DRIVERS,
        "oldest_cuda": _CUDA,
    }
    return usual | special


# GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf: compact placement with flex-start is for A3
# Ultra, A4 and H4D.
_TOOLKIT = Source(
    "Cluster Toolkit, modules/compute/gke-node-pool/main.tf", "https://github.com/GoogleCloudPlatform/cluster-toolkit"
)
_NOT_ON_DEMAND: tuple[CapacityKind, ...] = ("reservation", "flex-start", "spot")
_CPU_KINDS: tuple[CapacityKind, ...] = ("on-demand", "reservation", "spot")

A4 = Series(
    ("hyperdisk-balanced",),
    _sources(
        _ACCELERATED, boot_disks=_BOOT_A4, sold=_CONSUMPTION, oldest_driver=_AI_CLUSTERS, compact_flex_start=_TOOLKIT
    ),
    compact_flex_start=True,
    sold=_NOT_ON_DEMAND,
    gpu_network="roce",
    gpu_nics=8,
    # Eight deliver 3,200 Gbps in total.
    gpu_nic_gbps=400,
    other_nics=2,
    oldest_driver=570,
    # Compute capability 10.0 begins with CUDA 12.8.
    oldest_cuda=(12, 8),
)
A3_ULTRA = Series(
    ("hyperdisk-balanced",),
    _sources(
        _ACCELERATED,
        boot_disks=_AI_CLUSTERS,
        sold=_CONSUMPTION,
        oldest_driver=_AI_CLUSTERS,
        compact_flex_start=_TOOLKIT,
    ),
    compact_flex_start=True,
    sold=_NOT_ON_DEMAND,
    gpu_network="roce",
    gpu_nics=8,
    # Eight deliver 3,200 Gbps in total.
    gpu_nic_gbps=400,
    other_nics=2,
    oldest_driver=550,
    # Compute capability 9.0 begins with CUDA 11.8.
    oldest_cuda=(11, 8),
)
A3_MEGA = Series(
    ("pd-balanced", "pd-ssd", "hyperdisk-balanced"),
    _sources(_ACCELERATED),
    gpu_network="tcpxo",
    gpu_nics=8,
    gpu_nic_gbps=200,
    oldest_driver=525,
    oldest_cuda=(11, 8),
)
A3_HIGH = Series(
    ("pd-balanced", "pd-ssd", "hyperdisk-balanced"),
    _sources(_ACCELERATED),
    gpu_network="tcpx",
    gpu_nics=4,
    gpu_nic_gbps=200,
    oldest_driver=525,
    oldest_cuda=(11, 8),
)
A3_HIGH_SMALL = Series(
    ("pd-balanced", "pd-ssd"),
    _sources(_ACCELERATED, boot_disks=_SMALL_A3, sold=_SMALL_A3),
    sold=("flex-start", "spot"),
    oldest_driver=525,
    oldest_cuda=(11, 8),
)
A2 = Series(
    ("pd-balanced", "pd-ssd", "pd-standard"),
    _sources(_ACCELERATED),
    oldest_driver=450,
    # Compute capability 8.0 begins with CUDA 11.0.
    oldest_cuda=(11, 0),
)
G2 = Series(
    ("pd-balanced", "pd-ssd"),
    _sources(_ACCELERATED),
    oldest_driver=525,
    # Compute capability 8.9 begins with CUDA 11.8.
    oldest_cuda=(11, 8),
)
N2 = Series(("pd-balanced", "pd-ssd", "pd-standard"), _sources(_GENERAL), sold=_CPU_KINDS)
N2D = Series(("pd-balanced", "pd-ssd", "pd-standard"), _sources(_GENERAL), sold=_CPU_KINDS)
C3 = Series(("pd-balanced", "pd-ssd", "hyperdisk-balanced"), _sources(_GENERAL), sold=_CPU_KINDS)
E2 = Series(("pd-balanced", "pd-ssd", "pd-standard"), _sources(_GENERAL), compact=False, sold=_CPU_KINDS)
