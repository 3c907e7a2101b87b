"""What NVIDIA's DRA driver publishes of a node's GPUs.

Left out: engines and multiprocessors among a MIG device's capacities, and GPUs for virtual machines.

Answers to (read): https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/tree/main/cmd/gpu-kubelet-plugin (deviceinfo.go, mig.go: names
    and types)
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from berth.lab.devices import topology
from berth.lab.devices.gke_device_plugin import ACCELERATOR, gpus
from berth.lab.devices.gpu_operator import MIG_CONFIG
from berth.lab.devices.gpus import GPUS, slices
from berth.lab.devices.network_devices import PCIE_ROOT
from berth.lab.devices.operands import MIG_STATE, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.devices.gpus import Gpu

DRIVER = "gpu.nvidia.com"
DAEMONSET = ("dra-driver-nvidia-gpu-component", "kubelet-plugin")
"""Label of the pods of the chart's DaemonSet."""
ROOT_VARIABLE = "NVIDIA_DRIVER_ROOT"
"""Where the DaemonSet's containers look for NVIDIA's driver on the node."""

PARTITION = "cloud.google.com/gke-gpu-partition-size"

# What Google's tutorial "Device alignment of GPU, NIC, and CPU with DRA" shows of a node.
_DRIVER_VERSION = "580.126.20"
_CUDA = "13.0.0"

_ARCHITECTURES = {
    "ampere": "Ampere",
    "ada-lovelace": "Ada Lovelace",
    "hopper": "Hopper",
    "blackwell": "Blackwell",
}
# "MIG User Guide": number of the profile, by its slices and whether it has twice the memory; and its memory slices.
_PROFILES = {(1, False): (19, 1), (1, True): (15, 2), (2, False): (14, 2), (3, False): (9, 4), (4, False): (5, 4)}
_WHOLE = (0, 8)


def cut(labels: Mapping[str, str]) -> dict[str, int]:
    """The MIG instances that each GPU of a node is cut into, by profile; empty for whole GPUs."""
    gpu = GPUS.get(labels.get(ACCELERATOR, ""))
    if gpu is None or not gpu.mig:
        return {}
    wanted = labels.get(PARTITION, "")
    if not wanted and labels.get(MIG_STATE) == SUCCESS:
        wanted = labels.get(MIG_CONFIG, "").removeprefix("all-")
    if wanted == "balanced":
        return gpu.balanced()
    return {wanted: gpu.mig[wanted]} if wanted in gpu.mig else {}


def devices(name: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The devices of one node, as they stand in its ResourceSlice.

    Args:
        name: the node's.
        labels: the node's.
    """
    gpu = GPUS.get(labels.get(ACCELERATOR, ""))
    if gpu is None:
        return []
    profiles = cut(labels)
    found: list[dict[str, Any]] = []
    for number, slot in enumerate(topology.slots(gpus(labels))):
        identity = _uuid("GPU", f"{name}/{number}")
        common = {
            "architecture": {"string": _ARCHITECTURES[gpu.family]},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": f"{gpu.compute[0]}.{gpu.compute[1]}.0"},
            "cudaDriverVersion": {"version": _CUDA},
            "driverVersion": {"version": _DRIVER_VERSION},
            "productName": {"string": gpu.name},
            "resource.kubernetes.io/pciBusID": {"string": slot.gpu},
            PCIE_ROOT: {"string": slot.root},
        }
        if profiles:
            found += _instances(f"{name}/{number}", f"gpu-{number}", gpu, profiles, common | _parent(identity))
            continue
        attributes = common | {"type": {"string": "gpu"}, "uuid": {"string": identity}}
        capacity = {"memory": {"value": mebibytes(gpu.memory_mib)}}
        found.append({"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity})
    return found


def _parent(identity: str) -> dict[str, Any]:
    return {"type": {"string": "mig"}, "parentUUID": {"string": identity}}


def _instances(
    seed: str, parent: str, gpu: Gpu, profiles: Mapping[str, int], common: dict[str, Any]
) -> list[dict[str, Any]]:
    """The MIG devices of one GPU, each at the next free memory slice."""
    found, start = [], 0
    for profile, count in profiles.items():
        # Of two profiles with as many slices the later one has the double memory.
        double = next(each for each in gpu.mig if slices(each) == slices(profile)) != profile
        number, size = _PROFILES.get((slices(profile), double), _WHOLE)
        for _ in range(count):
            start += -start % size
            name = f"{parent}-mig-{profile.replace('.', '')}-{number}-{start}"
            attributes = common | {
                "profile": {"string": profile},
                "uuid": {"string": _uuid("MIG", f"{seed}/{name}")},
            }
            memory = int(profile.partition("g.")[2].removesuffix("gb")) * 1024
            capacity = {"memory": {"value": mebibytes(memory)}}
            capacity |= {f"memorySlice{at}": {"value": "1"} for at in range(start, start + size)}
            found.append({"name": name, "attributes": attributes, "capacity": capacity})
            start += size
    return found


def mebibytes(amount: int) -> str:
    """A quantity as the API server writes it: in the largest unit that has no fraction."""
    return f"{amount // 1024}Gi" if amount % 1024 == 0 else f"{amount}Mi"


def _uuid(kind: str, seed: str) -> str:
    return f"{kind}-{uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4)}"
