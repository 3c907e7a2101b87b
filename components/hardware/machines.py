"""What a machine type has: the facts that settings are checked against, and that components use.

Memory is in GB of 2**30 bytes, as Google's pages have it. The page of each figure is in its series' `sources`.
"""

from __future__ import annotations

from dataclasses import dataclass

from berth.components.hardware import series as of
from berth.components.hardware.series import Series


@dataclass(frozen=True)
class Machine:
    """One machine type.

    Attributes:
        name: the machine type's name.
        series: what it shares with others.
        vcpus: virtual CPUs.
        memory_gib: memory in GiB.
        gpus: GPUs of one node, 0 for none.
        accelerator: GKE's name for the GPU (label cloud.google.com/gke-accelerator), "" for none.
        gpu_product: the GPU's name for people, "" for none.
        gpu_memory_gib: memory of one GPU (a4: 1,440 GB for eight; NVIDIA's largest MIG profile agrees), 0 for none.
        local_ssds: Local SSDs that it always has, 375 GB each.
        local_ssd_choices: how many Local SSDs it can have instead of none; empty where that is not to choose.
    """

    name: str
    series: Series
    vcpus: int
    memory_gib: int
    gpus: int = 0
    accelerator: str = ""
    gpu_product: str = ""
    gpu_memory_gib: int = 0
    local_ssds: int = 0
    local_ssd_choices: tuple[int, ...] = ()

    @property
    def boot_disks(self) -> tuple[str, ...]:
        """Boot disk types that it takes; berth's default first."""
        return self.series.boot_disks

    @property
    def rdma(self) -> bool:
        """It has one RDMA NIC a GPU (RoCE) that GKE hands to pods by DRANET."""
        return self.series.gpu_network == "roce"


_B200 = ("nvidia-b200", "B200", 180)
_H200 = ("nvidia-h200-141gb", "H200", 141)
_H100_MEGA = ("nvidia-h100-mega-80gb", "H100", 80)
_H100 = ("nvidia-h100-80gb", "H100", 80)
_A100_80 = ("nvidia-a100-80gb", "A100 80GB", 80)
_A100 = ("nvidia-tesla-a100", "A100 40GB", 40)
_L4 = ("nvidia-l4", "L4", 24)

_ACCELERATED = (
    Machine("a4-highgpu-8g", of.A4, 224, 3968, 8, *_B200, local_ssds=32),
    Machine("a3-ultragpu-8g", of.A3_ULTRA, 224, 2952, 8, *_H200, local_ssds=32),
    Machine("a3-megagpu-8g", of.A3_MEGA, 208, 1872, 8, *_H100_MEGA, local_ssds=16),
    Machine("a3-highgpu-8g", of.A3_HIGH, 208, 1872, 8, *_H100, local_ssds=16),
    Machine("a3-highgpu-4g", of.A3_HIGH_SMALL, 104, 936, 4, *_H100, local_ssds=8),
    Machine("a3-highgpu-2g", of.A3_HIGH_SMALL, 52, 468, 2, *_H100, local_ssds=4),
    Machine("a3-highgpu-1g", of.A3_HIGH_SMALL, 26, 234, 1, *_H100, local_ssds=2),
    Machine("a2-ultragpu-1g", of.A2, 12, 170, 1, *_A100_80, local_ssds=1),
    Machine("a2-ultragpu-2g", of.A2, 24, 340, 2, *_A100_80, local_ssds=2),
    Machine("a2-ultragpu-4g", of.A2, 48, 680, 4, *_A100_80, local_ssds=4),
    Machine("a2-ultragpu-8g", of.A2, 96, 1360, 8, *_A100_80, local_ssds=8),
    Machine("a2-highgpu-1g", of.A2, 12, 85, 1, *_A100, local_ssd_choices=(1, 2, 4, 8)),
    Machine("a2-highgpu-2g", of.A2, 24, 170, 2, *_A100, local_ssd_choices=(2, 4, 8)),
    Machine("a2-highgpu-4g", of.A2, 48, 340, 4, *_A100, local_ssd_choices=(4, 8)),
    Machine("a2-highgpu-8g", of.A2, 96, 680, 8, *_A100, local_ssd_choices=(8,)),
    Machine("a2-megagpu-16g", of.A2, 96, 1360, 16, *_A100, local_ssd_choices=(8,)),
    Machine("g2-standard-4", of.G2, 4, 16, 1, *_L4, local_ssd_choices=(1,)),
    Machine("g2-standard-8", of.G2, 8, 32, 1, *_L4, local_ssd_choices=(1,)),
    Machine("g2-standard-12", of.G2, 12, 48, 1, *_L4, local_ssd_choices=(1,)),
    Machine("g2-standard-16", of.G2, 16, 64, 1, *_L4, local_ssd_choices=(1,)),
    Machine("g2-standard-24", of.G2, 24, 96, 2, *_L4, local_ssd_choices=(2,)),
    Machine("g2-standard-32", of.G2, 32, 128, 1, *_L4, local_ssd_choices=(1,)),
    Machine("g2-standard-48", of.G2, 48, 192, 4, *_L4, local_ssd_choices=(4,)),
    Machine("g2-standard-96", of.G2, 96, 384, 8, *_L4, local_ssd_choices=(8,)),
)

_Sizes = tuple[int, ...]
# GiB of memory per vCPU, and the vCPU counts that the series is sold in.
_GENERAL: dict[str, tuple[Series, dict[str, int], _Sizes]] = {
    "e2": (of.E2, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32)),
    "n2": (of.N2, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": (of.N2D, {"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "c3": (of.C3, {"standard": 4, "highmem": 8, "highcpu": 2}, (4, 8, 22, 44, 88, 176)),
}

# Local SSDs by vCPUs: up to this many vCPUs, these counts. E2 has none, and C3 only in types whose name ends in -lssd.
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

# Sizes that the regular rule above would make but that are not sold.
_NOT_SOLD = {"e2-highmem-32", "n2-highmem-128", "n2-highcpu-128", "n2d-highmem-128", "n2d-highmem-224"}


def _local_ssds(family: str, vcpus: int) -> _Sizes:
    return next((counts for most, counts in _LOCAL_SSDS.get(family, {}).items() if vcpus <= most), ())


def _general_purpose() -> list[Machine]:
    return [
        Machine(name, series, vcpus, vcpus * gib_per_vcpu, local_ssd_choices=_local_ssds(family, vcpus))
        for family, (series, shapes, sizes) in _GENERAL.items()
        for shape, gib_per_vcpu in shapes.items()
        for vcpus in sizes
        if (name := f"{family}-{shape}-{vcpus}") not in _NOT_SOLD
    ]


# Not by the rule of its series: 864 GiB, not 1024.
_N2_HIGHMEM_128 = Machine("n2-highmem-128", of.N2, 128, 864, local_ssd_choices=_local_ssds("n2", 128))

MACHINES: dict[str, Machine] = {
    machine.name: machine for machine in (*_ACCELERATED, *_general_purpose(), _N2_HIGHMEM_128)
}
"""Every machine type that berth knows, by name."""
