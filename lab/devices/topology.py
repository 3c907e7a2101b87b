"""Where the GPUs and NICs of a machine are: PCI addresses, PCIe roots and NUMA nodes.

Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA" (gke-ai-labs.dev) shows of an a3-ultragpu-8g: gpu-0 at
0000:8f:00.0 and gpu0rdma0 at 0000:91:00.0 under root pci0000:8c in NUMA node 0; gpu6rdma0 at 0000:cd:00.0 and gpu-7 under
pci0000:c8 in NUMA node 1. So two GPUs and two NICs have a root in common. That the other roots look alike, and that A4 is laid
out as A3 Ultra is, is the lab's assumption: no page says it, and a cluster's own ResourceSlices are what counts.

Answers to (read): Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA", which shows two roots of an
    a3-ultragpu-8g: https://gke-ai-labs.dev
Answers to (believed): the other roots of A3 Ultra, all roots of A4, and the place of the second gVNIC. `kubectl get
    resourceslices` on such a node would settle it.
"""

from __future__ import annotations

from dataclasses import dataclass

from berth.components.hardware.machines import PCIE

GVNIC = ("0000:c0:14.0", "pci0000:c0")
"""Address and root of the second gVNIC: the lab's choice."""


@dataclass(frozen=True)
class Slot:
    """A GPU's place, with the NIC beside it.

    Attributes:
        gpu: PCI address of the GPU.
        nic: PCI address of its NIC, where the machine has them.
        root: PCIe root of both, as `resource.kubernetes.io/pcieRoot` names it.
        numa: NUMA node of both.
    """

    gpu: str
    nic: str
    root: str
    numa: int


def slots(gpus: int) -> list[Slot]:
    """The places of a machine's GPUs, in the order of their numbers; 16 at most."""
    found = []
    for number in range(gpus):
        root, below = PCIE.roots[number // PCIE.gpus_per_root], number % PCIE.gpus_per_root
        found.append(
            Slot(
                f"0000:{root + PCIE.gpu_offset + below:02x}:00.0",
                f"0000:{root + PCIE.nic_offset + below:02x}:00.0",
                f"pci0000:{root:02x}",
                number * PCIE.numa_nodes // gpus,
            )
        )
    return found
