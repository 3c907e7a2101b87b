"""Devices of simulated nodes that DRA drivers publish: NICs by DraNet, GPUs by NVIDIA's. Pure.

Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA" shows of an a3-ultragpu-8g: gpu-0
at 0000:8f:00.0 and gpu0rdma0 at 0000:91:00.0 under root pci0000:8c in NUMA node 0; gpu6rdma0 at
0000:cd:00.0 and gpu-7 under pci0000:c8 in NUMA node 1. So two GPUs and two NICs share a root.

Left out: addresses of NICs and where their host stands, interfaces of other pods' networks, MIG
instances, and GPUs for virtual machines. Where the tutorial shows nothing, the places of cards and
their products are the lab's choice.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.hardware.machines import Gpu
from berth.components.hardware.names import PCIE_ROOT
from berth.lab.devices.gpus import Labels, gpu_count, gpu_of
from berth.lab.plugins.gcp.interfaces import Interface

SIMULATED = {"berth-lab": "simulated"}
_MACHINE = "node.kubernetes.io/instance-type"

# Vendor and product as the PCI ID database has them, of NICs for GPUs and of others.
_CARDS = {
    True: ("Mellanox Technologies", "MT2910 Family [ConnectX-7]"),
    False: ("Google, Inc.", "Compute Engine Virtual Ethernet [gVNIC]"),
}
# Versions of a node in Google's tutorial.
_DRIVER_VERSION = "580.126.20"
_CUDA = "13.0.0"

# Bus numbers of the PCIe roots, in the order of the GPUs: the four of A3 Ultra (the tutorial shows
# two of them), and as many more as 16 GPUs need. Each has two GPUs and their NICs, whose bus
# numbers count from the root's.
_ROOTS = (0x8C, 0x93, 0xC1, 0xC8, 0x0C, 0x13, 0x41, 0x48)
_GPUS_PER_ROOT = 2
_GPU_OFFSET = 3
_NIC_OFFSET = 5
_NUMA_NODES = 2


@dataclass(frozen=True)
class Slot:
    """Place of a GPU and of its NIC in a machine: PCI addresses, PCIe root and NUMA node."""

    gpu: str
    nic: str
    root: str  # as `resource.kubernetes.io/pcieRoot` names it
    numa: int


_GVNIC = Slot("", "0000:c0:14.0", "pci0000:c0", 1)
"""Place of the second gVNIC: the lab's choice."""


def slots(gpus: int) -> list[Slot]:
    """Return the places of a machine's GPUs, in the order of their numbers; 16 at most."""
    found = []
    for number in range(gpus):
        root = _ROOTS[number // _GPUS_PER_ROOT]
        below = number % _GPUS_PER_ROOT
        gpu, nic = (f"0000:{root + part + below:02x}:00.0" for part in (_GPU_OFFSET, _NIC_OFFSET))
        found.append(Slot(gpu, nic, f"pci0000:{root:02x}", number * _NUMA_NODES // gpus))
    return found


def nics(labels: Labels, cards: Sequence[Interface]) -> list[Object]:
    """Return the devices that DraNet publishes of a node's cards, which exclude the primary one."""
    rails = [card for card in cards if card.rdma]
    pairs = zip(slots(gpu_count(labels)), rails, strict=False)
    found = [
        _nic(labels, card, f"gpu{number}rdma0", slot) for number, (slot, card) in enumerate(pairs)
    ]
    others = [card for card in cards if not card.rdma]
    found += [_nic(labels, card, f"eth{number}", _GVNIC) for number, card in enumerate(others, 1)]
    return sorted(found, key=lambda device: str(device["name"]))


def _nic(labels: Labels, card: Interface, interface: str, slot: Slot) -> Object:
    vendor, product = _CARDS[card.rdma]
    attributes: dict[str, str | int | bool] = {
        "dra.net/ifName": interface,
        "dra.net/mtu": card.mtu,
        "dra.net/numaNode": slot.numa,
        "dra.net/pciAddress": slot.nic,
        "dra.net/pciDevice": product,
        "dra.net/pciVendor": vendor,
        "dra.net/rdma": card.rdma,
        "gce.dra.net/machineType": labels.get(_MACHINE, ""),
        "gce.dra.net/networkName": card.network,
        PCIE_ROOT: slot.root,
    }
    return {
        "name": f"pci-{slot.nic.replace(':', '-').replace('.', '-')}",
        "attributes": _typed(attributes),
    }


def _typed(attributes: Mapping[str, str | int | bool]) -> Object:
    """Attributes as a ResourceSlice has them, each value under the name of its type."""
    kinds = {bool: "bool", int: "int", str: "string"}
    return {name: {kinds[type(value)]: value} for name, value in attributes.items()}


def gpus(node: str, labels: Labels) -> list[Object]:
    """Return the devices that NVIDIA's driver publishes of a node: its GPUs."""
    gpu = gpu_of(labels)
    return (
        [_gpu(node, gpu, number, slot) for number, slot in enumerate(slots(gpu_count(labels)))]
        if gpu
        else []
    )


def _gpu(node: str, gpu: Gpu, number: int, slot: Slot) -> Object:
    attributes: dict[str, str | int | bool] = {
        "type": "gpu",
        "architecture": gpu.architecture,
        "brand": "Nvidia",
        "productName": gpu.driver_name,
        "resource.kubernetes.io/pciBusID": slot.gpu,
        "uuid": _uuid(f"{node}/{number}"),
        PCIE_ROOT: slot.root,
    }
    versions = {
        "cudaComputeCapability": {"version": f"{gpu.compute[0]}.{gpu.compute[1]}.0"},
        "cudaDriverVersion": {"version": _CUDA},
        "driverVersion": {"version": _DRIVER_VERSION},
    }
    # The API server writes a quantity in the largest unit that has no fraction.
    memory = gpu.driver_memory_mib
    quantity = f"{memory // 1024}Gi" if memory % 1024 == 0 else f"{memory}Mi"
    capacity = {"memory": {"value": quantity}}
    return {
        "name": f"gpu-{number}",
        "attributes": _typed(attributes) | versions,
        "capacity": capacity,
    }


def _uuid(seed: str) -> str:
    return f"GPU-{uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4)}"


def resource_slice(node: Object, driver: str, devices: list[Object]) -> Object:
    """Return the slice of a driver on a node; the slice goes with the node."""
    metadata = node["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"{metadata['name']}-{driver}",
            "labels": SIMULATED,
            "ownerReferences": [owner],
        },
        "spec": {
            "driver": driver,
            "nodeName": metadata["name"],
            "pool": {"name": metadata["name"], "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def is_current(target: Object, present: Object | None) -> bool:
    """Whether a slice is there as it should be, and of the same node."""
    if present is None or present["spec"].get("devices") != target["spec"]["devices"]:
        return False
    owners = [reference["uid"] for reference in present["metadata"].get("ownerReferences") or []]
    return owners == [reference["uid"] for reference in target["metadata"]["ownerReferences"]]
