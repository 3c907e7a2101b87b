"""Hardware table: GPUs, series and machine types, one row each. A new machine type is a row here.

Memory is in GB of 2**30 bytes, as Google's pages have it. `sources` of a GPU or series has the page
of each figure. Python rather than a data file, so that the type checker reads the rows and `berth
check` parses nothing.
"""

from __future__ import annotations

from berth.components.hardware.facts import CapacityKind, Gpu, Machine, NcclProfile, PcieLayout, Series, Source

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
_COMPACT_FLEX = Source(
    "Cluster Toolkit, modules/compute/gke-node-pool/main.tf", "https://github.com/GoogleCloudPlatform/cluster-toolkit"
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
    doubt="the notes of the release with which a GPU's compute capability begins could not be read",
)
_DISKS = Source(
    "Choose a disk type, machine support",
    "https://docs.cloud.google.com/compute/docs/disks#machine_type_support",
    doubt="could not be read; C3 without pd-standard and the small A3 without hyperdisk-balanced were",
)
_BOOT_A4 = Source(
    _ACCELERATED.page,
    _ACCELERATED.link,
    doubt="the page names hyperdisk-balanced; users quote the API's refusal of the other types",
)
_GPU_NAMES = Source("GPUs in GKE", "https://docs.cloud.google.com/kubernetes-engine/docs/concepts/gpus")
_QUOTA = Source("Allocation quotas", "https://docs.cloud.google.com/compute/resource-usage")
_MIG = Source(
    "Multi-Instance GPU User Guide, Supported MIG Profiles",
    "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html",
)
_CAPABILITY = Source("CUDA GPU compute capability", "https://developer.nvidia.com/cuda-gpus")
_REPORTS = Source(
    "Public reports of nvidia-smi and GPU feature discovery",
    "https://github.com/NVIDIA/k8s-device-plugin",
    doubt="`nvidia-smi` on each machine type would settle name and memory",
)
_GIB_A4 = Source(
    "DraNet documentation, RayCluster on A4",
    "https://github.com/kubernetes-sigs/dranet/blob/main/site/content/docs/user/kuberay.md",
)
_GIB_A3_ULTRA = Source(
    "Fine-tune and scale reinforcement learning with verl on GKE",
    "https://docs.cloud.google.com/kubernetes-engine/docs/tutorials/scaling-rl-verl-gke",
)
_ALIGNMENT = Source(
    "Device alignment of GPU, NIC, and CPU with DRA",
    "https://gke-ai-labs.dev",
    doubt="shows two roots of an a3-ultragpu-8g; the other roots and those of A4 are assumed to look alike",
)

_GPU = {
    "memory_gib": _ACCELERATED,
    "quota": _QUOTA,
    "own_quota": _QUOTA,
    "accelerator": _GPU_NAMES,
    "product": _ACCELERATED,
    "driver_name": _REPORTS,
    "driver_memory_mib": _REPORTS,
    "architecture": _CAPABILITY,
    "compute": _CAPABILITY,
    "oldest_driver": _DRIVERS,
    "oldest_cuda": _CUDA,
    "mig": _MIG,
}


def _mig(*profiles: str) -> dict[str, int]:
    """Return six profiles, smallest first; GPUs of seven slices hold equally many of each."""
    return dict(zip(profiles, (7, 4, 3, 2, 1, 1), strict=True))


_MIG_40 = _mig("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
_MIG_80 = _mig("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_MIG_141 = _mig("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")
_MIG_180 = _mig("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb")


_GPU_AI = _GPU | {"oldest_driver": _AI_CLUSTERS}
_SXM = "NVIDIA H100 80GB HBM3"

# GKE's name, product, quota, GB; name and MiB that the driver reports, architecture, compute
# capability, oldest driver and CUDA; MIG.
B200 = Gpu(
    "nvidia-b200",
    "B200",
    "NVIDIA_B200",
    180,
    "NVIDIA B200",
    183359,
    "Blackwell",
    (10, 0),
    570,
    (12, 8),
    _MIG_180,
    _GPU_AI,
)
H200 = Gpu(
    "nvidia-h200-141gb",
    "H200",
    "NVIDIA_H200",
    141,
    "NVIDIA H200",
    143771,
    "Hopper",
    (9, 0),
    550,
    (11, 8),
    _MIG_141,
    _GPU_AI,
)
H100_MEGA = Gpu(
    "nvidia-h100-mega-80gb", "H100", "NVIDIA_H100_MEGA", 80, _SXM, 81559, "Hopper", (9, 0), 525, (11, 8), _MIG_80, _GPU
)
H100 = Gpu("nvidia-h100-80gb", "H100", "NVIDIA_H100", 80, _SXM, 81559, "Hopper", (9, 0), 525, (11, 8), _MIG_80, _GPU)
A100_80 = Gpu(
    "nvidia-a100-80gb",
    "A100 80GB",
    "NVIDIA_A100_80GB",
    80,
    "NVIDIA A100-SXM4-80GB",
    81920,
    "Ampere",
    (8, 0),
    450,
    (11, 0),
    _MIG_80,
    _GPU,
    own_quota=True,
)
A100 = Gpu(
    "nvidia-tesla-a100",
    "A100 40GB",
    "NVIDIA_A100",
    40,
    "NVIDIA A100-SXM4-40GB",
    40960,
    "Ampere",
    (8, 0),
    450,
    (11, 0),
    _MIG_40,
    _GPU,
    own_quota=True,
)
L4 = Gpu(
    "nvidia-l4",
    "L4",
    "NVIDIA_L4",
    24,
    "NVIDIA L4",
    23034,
    "Ada Lovelace",
    (8, 9),
    525,
    (11, 8),
    {},
    _GPU,
    own_quota=True,
)


def _sources(page: Source, **special: Source) -> dict[str, Source]:
    """Return the page of each figure: the series' own page, or another one that states it."""
    usual = {
        **dict.fromkeys(("vcpus", "memory_gib", "gpus"), page),
        "boot_disks": _DISKS,
        **dict.fromkeys(("gpu_network", "gpu_nics", "gpu_nic_gbps", "other_nics"), _GPU_NETWORK),
        **dict.fromkeys(("compact", "compact_flex_start"), _COMPACT),
        **dict.fromkeys(("local_ssds", "local_ssd_choices"), _LOCAL_SSD),
        "sold": _FLEX_START,
        **dict.fromkeys(("gke_since", "gke_driver_since", "gke_rdma_since"), _AI_CLUSTERS),
    }
    return usual | special


_NOT_ON_DEMAND: tuple[CapacityKind, ...] = ("reservation", "flex-start", "spot")
_CPU_KINDS: tuple[CapacityKind, ...] = ("on-demand", "reservation", "spot")
_PERSISTENT = ("pd-balanced", "pd-ssd", "pd-standard")
_A3_DISKS = ("pd-balanced", "pd-ssd", "hyperdisk-balanced")

A4 = Series(
    "A4",
    ("hyperdisk-balanced",),
    _sources(_ACCELERATED, boot_disks=_BOOT_A4, sold=_CONSUMPTION, compact_flex_start=_COMPACT_FLEX),
    compact_flex_start=True,
    sold=_NOT_ON_DEMAND,
    gpu_network="roce",
    gpu_nics=8,
    gpu_nic_gbps=400,
    other_nics=2,
    nccl=NcclProfile("a4", "tuner_config_a4.txtpb", _GIB_A4),
    gke_since="1.32.1-gke.1729000",
    gke_rdma_since="1.32.2-gke.1475000",
)
A3_ULTRA = Series(
    "A3 Ultra",
    ("hyperdisk-balanced",),
    _sources(_ACCELERATED, boot_disks=_AI_CLUSTERS, sold=_CONSUMPTION, compact_flex_start=_COMPACT_FLEX),
    compact_flex_start=True,
    sold=_NOT_ON_DEMAND,
    gpu_network="roce",
    gpu_nics=8,
    gpu_nic_gbps=400,
    other_nics=2,
    nccl=NcclProfile("a3-ultra", "tuner_config_a3u.txtpb", _GIB_A3_ULTRA),
    gke_driver_since="1.31.5-gke.1169000",
    gke_rdma_since="1.31.4-gke.1183000",
)
A3_MEGA = Series("A3 Mega", _A3_DISKS, _sources(_ACCELERATED), gpu_network="tcpxo", gpu_nics=8, gpu_nic_gbps=200)
A3_HIGH = Series("A3 High", _A3_DISKS, _sources(_ACCELERATED), gpu_network="tcpx", gpu_nics=4, gpu_nic_gbps=200)
A3_HIGH_SMALL = Series(
    "A3 High with fewer than eight GPUs",
    ("pd-balanced", "pd-ssd"),
    _sources(_ACCELERATED, boot_disks=_SMALL_A3, sold=_SMALL_A3),
    sold=("flex-start", "spot"),
)
A2 = Series("A2", _PERSISTENT, _sources(_ACCELERATED))
G2 = Series("G2", ("pd-balanced", "pd-ssd"), _sources(_ACCELERATED))
N2 = Series("N2", _PERSISTENT, _sources(_GENERAL), sold=_CPU_KINDS)
N2D = Series("N2D", _PERSISTENT, _sources(_GENERAL), sold=_CPU_KINDS)
C3 = Series("C3", _A3_DISKS, _sources(_GENERAL), sold=_CPU_KINDS)
E2 = Series("E2", _PERSISTENT, _sources(_GENERAL), compact=False, sold=_CPU_KINDS)

# Name, series, vCPUs, GiB of memory, number of GPUs, GPU; Local SSDs.
_WITH_GPUS = (
    Machine("a4-highgpu-8g", A4, 224, 3968, 8, B200, local_ssds=32),
    Machine("a3-ultragpu-8g", A3_ULTRA, 224, 2952, 8, H200, local_ssds=32),
    Machine("a3-megagpu-8g", A3_MEGA, 208, 1872, 8, H100_MEGA, local_ssds=16),
    Machine("a3-highgpu-8g", A3_HIGH, 208, 1872, 8, H100, local_ssds=16),
    Machine("a3-highgpu-4g", A3_HIGH_SMALL, 104, 936, 4, H100, local_ssds=8),
    Machine("a3-highgpu-2g", A3_HIGH_SMALL, 52, 468, 2, H100, local_ssds=4),
    Machine("a3-highgpu-1g", A3_HIGH_SMALL, 26, 234, 1, H100, local_ssds=2),
    Machine("a2-ultragpu-1g", A2, 12, 170, 1, A100_80, local_ssds=1),
    Machine("a2-ultragpu-2g", A2, 24, 340, 2, A100_80, local_ssds=2),
    Machine("a2-ultragpu-4g", A2, 48, 680, 4, A100_80, local_ssds=4),
    Machine("a2-ultragpu-8g", A2, 96, 1360, 8, A100_80, local_ssds=8),
    Machine("a2-highgpu-1g", A2, 12, 85, 1, A100, local_ssd_choices=(1, 2, 4, 8)),
    Machine("a2-highgpu-2g", A2, 24, 170, 2, A100, local_ssd_choices=(2, 4, 8)),
    Machine("a2-highgpu-4g", A2, 48, 340, 4, A100, local_ssd_choices=(4, 8)),
    Machine("a2-highgpu-8g", A2, 96, 680, 8, A100, local_ssd_choices=(8,)),
    Machine("a2-megagpu-16g", A2, 96, 1360, 16, A100, local_ssd_choices=(8,)),
    Machine("g2-standard-4", G2, 4, 16, 1, L4, local_ssd_choices=(1,)),
    Machine("g2-standard-8", G2, 8, 32, 1, L4, local_ssd_choices=(1,)),
    Machine("g2-standard-12", G2, 12, 48, 1, L4, local_ssd_choices=(1,)),
    Machine("g2-standard-16", G2, 16, 64, 1, L4, local_ssd_choices=(1,)),
    Machine("g2-standard-24", G2, 24, 96, 2, L4, local_ssd_choices=(2,)),
    Machine("g2-standard-32", G2, 32, 128, 1, L4, local_ssd_choices=(1,)),
    Machine("g2-standard-48", G2, 48, 192, 4, L4, local_ssd_choices=(4,)),
    Machine("g2-standard-96", G2, 96, 384, 8, L4, local_ssd_choices=(8,)),
)

_Sizes = tuple[int, ...]
# GiB of memory for each vCPU, and the vCPU counts that Google sells.
_GENERAL_PURPOSE: dict[str, tuple[Series, dict[str, int], _Sizes]] = {
    "e2": (E2, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32)),
    "n2": (N2, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": (N2D, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "c3": (C3, {"standard": 4, "highmem": 8, "highcpu": 2}, (4, 8, 22, 44, 88, 176)),
}

# Local SSDs by vCPUs: up to this many vCPUs, these counts. E2 has none, and C3 only in types whose
# name ends in -lssd.
_LOCAL_SSDS: dict[str, dict[int, _Sizes]] = {
    "n2": {
        10: (1, 2, 4, 8, 16, 24),
        20: (2, 4, 8, 16, 24),
        40: (4, 8, 16, 24),
        80: (8, 16, 24),
        128: (16, 24),
    },
    "n2d": {16: (1, 2, 4, 8, 16, 24), 48: (2, 4, 8, 16, 24), 80: (4, 8, 16, 24), 224: (8, 16, 24)},
}

# Sizes that the regular rule above would give and that Google does not sell, or not with that
# memory.
_NOT_SOLD = {"e2-highmem-32", "n2-highmem-128", "n2-highcpu-128", "n2d-highmem-128", "n2d-highmem-224"}


def _local_ssds(family: str, vcpus: int) -> _Sizes:
    return next((counts for most, counts in _LOCAL_SSDS.get(family, {}).items() if vcpus <= most), ())


def _general_purpose() -> list[Machine]:
    return [
        Machine(name, series, vcpus, vcpus * gib_per_vcpu, local_ssd_choices=_local_ssds(family, vcpus))
        for family, (series, shapes, sizes) in _GENERAL_PURPOSE.items()
        for shape, gib_per_vcpu in shapes.items()
        for vcpus in sizes
        if (name := f"{family}-{shape}-{vcpus}") not in _NOT_SOLD
    ]


_N2_HIGHMEM_128 = Machine("n2-highmem-128", N2, 128, 864, local_ssd_choices=_local_ssds("n2", 128))

MACHINES: dict[str, Machine] = {
    machine.name: machine for machine in (*_WITH_GPUS, *_general_purpose(), _N2_HIGHMEM_128)
}
"""Machine types that berth knows, by name."""

GPUS: dict[str, Gpu] = {machine.gpu.accelerator: machine.gpu for machine in _WITH_GPUS}
"""GPUs of these machine types, by GKE's name."""

GIB_PROFILES: dict[str, NcclProfile] = {
    machine.series.nccl.name: machine.series.nccl for machine in _WITH_GPUS if machine.series.nccl
}
"""NCCL's profiles for gIB, by name."""

NCCL_PROFILES = (*GIB_PROFILES, "single-node", "none")
"""Values of `nccl.profile`: gIB's profiles, GPUs of one node, and nothing."""

RDMA_NICS = max(machine.series.gpu_nics for machine in _WITH_GPUS if machine.rdma)
"""RDMA NICs of a node, and so subnetworks of an RDMA network."""

PCIE = PcieLayout((0x8C, 0x93, 0xC1, 0xC8, 0x0C, 0x13, 0x41, 0x48), 2, 3, 5, 2, _ALIGNMENT)
"""Layout of nodes with GPUs: the four roots of A3 Ultra, and as many more as 16 GPUs need."""
