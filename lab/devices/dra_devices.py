"""Devices of simulated nodes that DRA drivers publish: NICs by DraNet, GPUs by NVIDIA's. Pure.

Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA" shows of an a3-ultragpu-8g: gpu-0
at 0000:8f:00.0 and gpu0rdma0 at 0000:91:00.0 under root pci0000:8c in NUMA node 0; gpu6rdma0 at
0000:cd:00.0 and gpu-7 under pci0000:c8 in NUMA node 1. So two GPUs and two NICs share a root.

Left out: addresses of NICs and interfaces of other pods' networks; engines and multiprocessors
among a MIG device's capacities; GPUs for virtual machines.

Where the tutorial shows nothing, the places of cards, their products and the blocks of hosts are
the lab's choice.

Answers to (read): sigs.k8s.io/dranet v1.4.0, pkg/inventory/db.go, pkg/apis/attributes.go and
    pkg/cloudprovider/gce/gce.go (names and types; a card with a network interface has no
    `dra.net/rdmaDevice`): https://github.com/kubernetes-sigs/dranet/blob/v1.4.0/pkg/inventory/db.go
Answers to (read):
    https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/tree/main/cmd/gpu-kubelet-plugin
    (deviceinfo.go, mig.go: names and types)
Answers to (read): Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA", which shows
    two roots of an a3-ultragpu-8g, and one slice a node and driver: https://gke-ai-labs.dev
Answers to (read): kubernetes v1.36.3, staging/src/k8s.io/dynamic-resource-allocation/resourceslice
    (one pool a node, a generation for each change):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/dynamic-resource-allocation/resourceslice/resourceslicecontroller.go
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.hardware.facts import Gpu, mig_memory_gib, mig_slices
from berth.components.hardware.names import PCIE_ROOT
from berth.lab.devices.gpus import Labels, cut, gpu_count, gpu_of
from berth.lab.plugins.gcp.interfaces import Interface

_SIMULATED = {"berth-lab": "simulated"}
_PARTITION = "cloud.google.com/gke-gpu-partition-size"
_MACHINE = "node.kubernetes.io/instance-type"

# Vendor and product as the PCI ID database has them, of NICs for GPUs and of others.
_CARDS = {
    True: ("Mellanox Technologies", "MT2910 Family [ConnectX-7]"),
    False: ("Google, Inc.", "Compute Engine Virtual Ethernet [gVNIC]"),
}
# Versions of a node in Google's tutorial.
_DRIVER_VERSION, _CUDA = "580.126.20", "13.0.0"
# "MIG User Guide": number and memory slices of a profile, by its slices and whether it has twice
# the memory.
_PROFILES = {(1, False): (19, 1), (1, True): (15, 2), (2, False): (14, 2), (3, False): (9, 4), (4, False): (5, 4)}
_WHOLE = (0, 8)

# Bus numbers of the PCIe roots, in the order of the GPUs: the four of A3 Ultra (the tutorial shows
# two of them), and as many more as 16 GPUs need. Each has two GPUs and their NICs, whose bus
# numbers count from the root's.
_ROOTS = (0x8C, 0x93, 0xC1, 0xC8, 0x0C, 0x13, 0x41, 0x48)
_GPUS_PER_ROOT, _GPU_OFFSET, _NIC_OFFSET = 2, 3, 5
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
        root, below = _ROOTS[number // _GPUS_PER_ROOT], number % _GPUS_PER_ROOT
        gpu, nic = (f"0000:{root + part + below:02x}:00.0" for part in (_GPU_OFFSET, _NIC_OFFSET))
        found.append(Slot(gpu, nic, f"pci0000:{root:02x}", number * _NUMA_NODES // gpus))
    return found


def nics(node: str, labels: Labels, cards: Sequence[Interface]) -> list[Object]:
    """Return the devices that DraNet publishes of a node's cards, which exclude the primary one."""
    rails = [card for card in cards if card.rdma]
    pairs = zip(slots(gpu_count(labels)), rails, strict=False)
    found = [_nic(node, labels, card, f"gpu{number}rdma0", slot) for number, (slot, card) in enumerate(pairs)]
    others = [card for card in cards if not card.rdma]
    found += [_nic(node, labels, card, f"eth{number}", _GVNIC) for number, card in enumerate(others, 1)]
    return sorted(found, key=lambda device: str(device["name"]))


def _nic(node: str, labels: Labels, card: Interface, interface: str, slot: Slot) -> Object:
    vendor, product = _CARDS[card.rdma]
    # Nodes of one instance group share a block and its part, as if placed close together.
    group = node.rsplit("-", 1)[0]
    mac = _digest(f"{node}/{interface}")
    attributes: dict[str, str | int | bool] = {
        "dra.net/alias": "",
        "dra.net/ebpf": False,
        "dra.net/encapsulation": "ether",
        "dra.net/ifName": interface,
        "dra.net/mac": ":".join(["42", "01", *(mac[at : at + 2] for at in range(0, 8, 2))]),
        "dra.net/mtu": card.mtu,
        "dra.net/numaNode": slot.numa,
        "dra.net/pciAddress": slot.nic,
        "dra.net/pciDevice": product,
        "dra.net/pciVendor": vendor,
        "dra.net/rdma": card.rdma,
        "dra.net/sriov": False,
        "dra.net/state": "up",
        "dra.net/type": "device",
        "dra.net/virtual": False,
        "gce.dra.net/block": _digest(f"block of {group}"),
        "gce.dra.net/host": _digest(f"host of {node}"),
        "gce.dra.net/machineType": labels.get(_MACHINE, ""),
        "gce.dra.net/networkName": card.network,
        "gce.dra.net/networkProjectNumber": card.project,
        "gce.dra.net/subBlock": _digest(f"part of {group}"),
        PCIE_ROOT: slot.root,
    }
    return {"name": f"pci-{slot.nic.replace(':', '-').replace('.', '-')}", "attributes": _typed(attributes)}


def _typed(attributes: Mapping[str, str | int | bool]) -> Object:
    """Attributes as a ResourceSlice has them, each value under the name of its type."""
    kinds = {bool: "bool", int: "int", str: "string"}
    return {name: {kinds[type(value)]: value} for name, value in attributes.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def gpus(node: str, labels: Labels) -> list[Object]:
    """Return the devices that NVIDIA's driver publishes of a node: GPUs or MIG instances."""
    gpu = gpu_of(labels)
    if gpu is None:
        return []
    profile = labels.get(_PARTITION, "")
    layout = ({profile: gpu.mig[profile]} if profile in gpu.mig else {}) if profile else cut(labels)
    found: list[Object] = []
    for number, slot in enumerate(slots(gpu_count(labels))):
        identity = _uuid("GPU", f"{node}/{number}")
        common = _typed(
            {
                "architecture": gpu.architecture,
                "brand": "Nvidia",
                "productName": gpu.driver_name,
                "resource.kubernetes.io/pciBusID": slot.gpu,
                PCIE_ROOT: slot.root,
            }
        ) | {
            "cudaComputeCapability": {"version": f"{gpu.compute[0]}.{gpu.compute[1]}.0"},
            "cudaDriverVersion": {"version": _CUDA},
            "driverVersion": {"version": _DRIVER_VERSION},
        }
        if layout:
            common |= _typed({"type": "mig", "parentUUID": identity})
            found += _instances(f"{node}/{number}", f"gpu-{number}", gpu, layout, common)
            continue
        capacity = {"memory": {"value": mebibytes(gpu.driver_memory_mib)}}
        attributes = common | _typed({"type": "gpu", "uuid": identity})
        found.append({"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity})
    return found


def _instances(seed: str, parent: str, gpu: Gpu, layout: Mapping[str, int], common: Object) -> list[Object]:
    """MIG devices of one GPU, each at the next free memory slice."""
    found, start = [], 0
    for profile in (profile for profile, count in layout.items() for _ in range(count)):
        # Of two profiles with equally many slices the later one has twice the memory.
        double = next(other for other in gpu.mig if mig_slices(other) == mig_slices(profile)) != profile
        number, size = _PROFILES.get((mig_slices(profile), double), _WHOLE)
        start += -start % size
        name = f"{parent}-mig-{profile.replace('.', '')}-{number}-{start}"
        attributes = common | _typed({"profile": profile, "uuid": _uuid("MIG", f"{seed}/{name}")})
        capacity = {"memory": {"value": mebibytes(mig_memory_gib(profile) * 1024)}}
        capacity |= {f"memorySlice{at}": {"value": "1"} for at in range(start, start + size)}
        found.append({"name": name, "attributes": attributes, "capacity": capacity})
        start += size
    return found


def mebibytes(amount: int) -> str:
    """Return a quantity as the API server writes it: in the largest unit that has no fraction."""
    return f"{amount // 1024}Gi" if amount % 1024 == 0 else f"{amount}Mi"


def _uuid(kind: str, seed: str) -> str:
    return f"{kind}-{uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4)}"


def resource_slice(node: Object, driver: str, devices: list[Object]) -> Object:
    """Return the first slice of a driver on a node; the slice goes with the node."""
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{metadata['name']}-{driver}", "labels": _SIMULATED, "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": metadata["name"],
            "pool": {"name": metadata["name"], "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def changes(target: Iterable[Object], present: Iterable[Object]) -> tuple[list[Object], list[Object], list[str]]:
    """Return slices to create, slices to replace, and names of slices to delete.

    Target slices are in their first generation. Slices of real drivers are left alone.
    """
    labeled = ((entry, entry["metadata"].get("labels") or {}) for entry in present)
    ours = {entry["metadata"]["name"]: entry for entry, labels in labeled if _SIMULATED.items() <= labels.items()}
    new, changed, remaining = [], [], set()
    for entry in target:
        name, owner = entry["metadata"]["name"], entry["metadata"]["ownerReferences"][0]["uid"]
        before = ours.get(name)
        if before is None:
            new.append(entry)
        elif owner not in [reference["uid"] for reference in before["metadata"].get("ownerReferences") or []]:
            continue  # of a node that had this name: it goes first, and the next look makes the new one
        elif before["spec"].get("devices") != entry["spec"]["devices"]:
            pool = entry["spec"]["pool"] | {"generation": before["spec"]["pool"]["generation"] + 1}
            metadata = entry["metadata"] | {"resourceVersion": before["metadata"]["resourceVersion"]}
            changed.append(entry | {"metadata": metadata, "spec": entry["spec"] | {"pool": pool}})
        remaining.add(name)
    return new, changed, [name for name in ours if name not in remaining]
