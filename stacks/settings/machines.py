"""What a machine type has: the facts that settings are checked against.

Sources: Google Compute Engine's machine family pages, "Accelerator-optimized machine family"
(https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines) and "General-purpose machine family"
(https://docs.cloud.google.com/compute/docs/general-purpose-machines). Memory there is in GB of 2**30 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """One machine type.

    Attributes:
        name: the machine type's name.
        vcpus: virtual CPUs.
        memory_gib: memory in GiB.
        gpus: GPUs of one node, 0 for none.
        accelerator: GKE's name for the GPU (label cloud.google.com/gke-accelerator), "" for none.
        gpu_product: the GPU's name for people, "" for none.
        gpu_memory_gib: memory of one GPU, by the same pages (a4: 1,440 GB for eight; NVIDIA's largest MIG profile
            agrees), 0 for none.
        rdma: it has one RDMA NIC a GPU (RoCE) that GKE hands to pods by DRANET.
    """

    name: str
    vcpus: int
    memory_gib: int
    gpus: int = 0
    accelerator: str = ""
    gpu_product: str = ""
    gpu_memory_gib: int = 0
    rdma: bool = False


_ACCELERATED = (
    Machine("a4-highgpu-8g", 224, 3968, 8, "nvidia-b200", "B200", 180, rdma=True),
    Machine("a3-ultragpu-8g", 224, 2952, 8, "nvidia-h200-141gb", "H200", 141, rdma=True),
    Machine("a3-megagpu-8g", 208, 1872, 8, "nvidia-h100-mega-80gb", "H100", 80),
    Machine("a3-highgpu-8g", 208, 1872, 8, "nvidia-h100-80gb", "H100", 80),
    Machine("a2-ultragpu-1g", 12, 170, 1, "nvidia-a100-80gb", "A100 80GB", 80),
    Machine("a2-ultragpu-2g", 24, 340, 2, "nvidia-a100-80gb", "A100 80GB", 80),
    Machine("a2-ultragpu-4g", 48, 680, 4, "nvidia-a100-80gb", "A100 80GB", 80),
    Machine("a2-ultragpu-8g", 96, 1360, 8, "nvidia-a100-80gb", "A100 80GB", 80),
    Machine("a2-highgpu-1g", 12, 85, 1, "nvidia-tesla-a100", "A100 40GB", 40),
    Machine("a2-highgpu-2g", 24, 170, 2, "nvidia-tesla-a100", "A100 40GB", 40),
    Machine("a2-highgpu-4g", 48, 340, 4, "nvidia-tesla-a100", "A100 40GB", 40),
    Machine("a2-highgpu-8g", 96, 680, 8, "nvidia-tesla-a100", "A100 40GB", 40),
    Machine("g2-standard-4", 4, 16, 1, "nvidia-l4", "L4", 24),
    Machine("g2-standard-8", 8, 32, 1, "nvidia-l4", "L4", 24),
    Machine("g2-standard-12", 12, 48, 1, "nvidia-l4", "L4", 24),
    Machine("g2-standard-16", 16, 64, 1, "nvidia-l4", "L4", 24),
    Machine("g2-standard-24", 24, 96, 2, "nvidia-l4", "L4", 24),
    Machine("g2-standard-32", 32, 128, 1, "nvidia-l4", "L4", 24),
    Machine("g2-standard-48", 48, 192, 4, "nvidia-l4", "L4", 24),
    Machine("g2-standard-96", 96, 384, 8, "nvidia-l4", "L4", 24),
)

# GiB of memory per vCPU, and the vCPU counts that the family is sold in.
_GENERAL: dict[str, tuple[dict[str, int], tuple[int, ...]]] = {
    "e2": ({"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32)),
    "n2": ({"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": ({"standard": 4, "highmem": 8, "highcpu": 1}, (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "c3": ({"standard": 4, "highmem": 8, "highcpu": 2}, (4, 8, 22, 44, 88, 176)),
}

# Sizes that the regular rule above would make but that are not sold.
_NOT_SOLD = {"e2-highmem-32", "n2-highmem-128", "n2-highcpu-128", "n2d-highmem-128", "n2d-highmem-224"}


def _general_purpose() -> list[Machine]:
    return [
        Machine(name, vcpus, vcpus * gib_per_vcpu)
        for family, (shapes, sizes) in _GENERAL.items()
        for shape, gib_per_vcpu in shapes.items()
        for vcpus in sizes
        if (name := f"{family}-{shape}-{vcpus}") not in _NOT_SOLD
    ]


MACHINES: dict[str, Machine] = {
    machine.name: machine for machine in (*_ACCELERATED, *_general_purpose(), Machine("n2-highmem-128", 128, 864))
}
"""Every machine type that berth knows, by name."""
