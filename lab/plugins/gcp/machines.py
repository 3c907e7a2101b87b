"""What a machine type is made of: one table, from Google's own pages.

Sources, read as of 2026: "Accelerator-optimized machine family" (docs.cloud.google.com/compute/docs/
accelerator-optimized-machines) and "General-purpose machine family" (…/general-purpose-machines) for processors,
memory, GPUs and bundled SSDs; the `--accelerator` names are those of the GKE page "GPUs in GKE". Google states memory
in GB and means GiB, as the memory that its machines report shows.

Answers to (read): https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines,
    https://docs.cloud.google.com/compute/docs/general-purpose-machines, and
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/gpus.
"""

from __future__ import annotations

from dataclasses import dataclass

# "About Local SSD disks": every disk has 375 GB, but those of a3-ultragpu, a4 and newer come as 375 GiB partitions too.
LOCAL_SSD_GIB = 375

_HYPERDISK = ("hyperdisk-balanced", "hyperdisk-extreme")
_PERSISTENT = ("pd-balanced", "pd-ssd", "pd-standard")


@dataclass(frozen=True)
class Machine:
    """One machine type.

    Attributes:
        name: as Google names it.
        cpu: virtual CPUs.
        memory_gib: memory.
        accelerator: GPU type as GKE names it; empty without GPUs.
        accelerators: number of GPUs, fixed by the machine type.
        bundled_ssds: Local SSDs that always come with the machine.
        boot_disks: boot disk types that it takes, the default one first.
        rdma: whether it has RDMA network cards, one for each GPU (RoCE, through a `…-vpc-roce` network).
        allocatable_cpu_millis: where Google fixes it (machines that share a core), else 0: by formula.
    """

    name: str
    cpu: int
    memory_gib: float
    accelerator: str = ""
    accelerators: int = 0
    bundled_ssds: int = 0
    boot_disks: tuple[str, ...] = _PERSISTENT
    rdma: bool = False
    allocatable_cpu_millis: int = 0

    @property
    def family(self) -> str:
        """The series, such as `a4`: the value of GKE's `cloud.google.com/machine-family` label."""
        return self.name.split("-")[0]


def _accelerator_optimized() -> list[Machine]:
    b200, h200 = "nvidia-b200", "nvidia-h200-141gb"
    h100, h100_mega = "nvidia-h100-80gb", "nvidia-h100-mega-80gb"
    a100, a100_80 = "nvidia-tesla-a100", "nvidia-a100-80gb"
    a3_disks = ("pd-balanced", "pd-ssd", "hyperdisk-balanced", "hyperdisk-extreme")
    machines = [
        Machine("a4-highgpu-8g", 224, 3968, b200, 8, 32, _HYPERDISK, rdma=True),
        Machine("a3-ultragpu-8g", 224, 2952, h200, 8, 32, _HYPERDISK, rdma=True),
        Machine("a3-megagpu-8g", 208, 1872, h100_mega, 8, 16, a3_disks),
        Machine("a3-highgpu-8g", 208, 1872, h100, 8, 16, a3_disks),
        Machine("a3-highgpu-4g", 104, 936, h100, 4, 8, a3_disks),
        Machine("a3-highgpu-2g", 52, 468, h100, 2, 4, a3_disks),
        Machine("a3-highgpu-1g", 26, 234, h100, 1, 2, a3_disks),
        Machine("a2-megagpu-16g", 96, 1360, a100, 16),
    ]
    for gpus in (1, 2, 4, 8):
        machines.append(Machine(f"a2-highgpu-{gpus}g", 12 * gpus, 85 * gpus, a100, gpus))
        machines.append(Machine(f"a2-ultragpu-{gpus}g", 12 * gpus, 170 * gpus, a100_80, gpus, gpus))
    l4 = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}
    machines += [
        Machine(f"g2-standard-{cpu}", cpu, 4 * cpu, "nvidia-l4", gpus, boot_disks=("pd-balanced", "pd-ssd"))
        for cpu, gpus in l4.items()
    ]
    return machines


# Sizes in virtual CPUs and GiB for each of them.
_GENERAL_PURPOSE: dict[str, tuple[float, tuple[int, ...]]] = {
    "e2-standard": (4, (2, 4, 8, 16, 32)),
    "e2-highmem": (8, (2, 4, 8, 16)),
    "e2-highcpu": (1, (2, 4, 8, 16, 32)),
    "n1-standard": (3.75, (1, 2, 4, 8, 16, 32, 64, 96)),
    "n1-highmem": (6.5, (2, 4, 8, 16, 32, 64, 96)),
    "n2-standard": (4, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2-highmem": (8, (2, 4, 8, 16, 32, 48, 64, 80, 96)),
    "n2-highcpu": (1, (2, 4, 8, 16, 32, 48, 64, 80, 96)),
    "n2d-standard": (4, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "n2d-highmem": (8, (2, 4, 8, 16, 32, 48, 64, 80, 96)),
    "n2d-highcpu": (1, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "c3-standard": (4, (4, 8, 22, 44, 88, 176)),
    "c3-highmem": (8, (4, 8, 22, 44, 88, 176)),
    "c3-highcpu": (2, (4, 8, 22, 44, 88, 176)),
}


def _general_purpose() -> list[Machine]:
    machines = [
        Machine(f"{family}-{cpu}", cpu, cpu * memory)
        for family, (memory, sizes) in _GENERAL_PURPOSE.items()
        for cpu in sizes
    ]
    # "Plan GKE Standard node sizes": machines that share a core have 940 of their 2000 millicores allocatable.
    shared = {"e2-micro": 1, "e2-small": 2, "e2-medium": 4}
    machines += [Machine(name, 2, memory, allocatable_cpu_millis=940) for name, memory in shared.items()]
    # Not in the table of their family's rule: n2-highmem-128 has 864 GiB, not 1024.
    machines.append(Machine("n2-highmem-128", 128, 864))
    return machines


MACHINES = {machine.name: machine for machine in [*_accelerator_optimized(), *_general_purpose()]}

# The machine type of a node pool that names none (GKE's NodeConfig.machineType).
DEFAULT_MACHINE = "e2-medium"
