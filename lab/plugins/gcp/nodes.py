"""Nodes of a node pool: names and manifests, from the records of the pool and its cluster.

Labels and taints are those that GKE's pages name ("GPUs in GKE", "About node labels", "Flex-start",
"Spot VMs") and that nodes of public GKE clusters carry; what GKE keeps for its own daemons is left
out. The names of nodes are the lab's choice, in the form of GKE's.
"""

import hashlib
from typing import Any

from berth.components.hardware.allocatable import allocatable_amounts, node_capacity
from berth.components.hardware.machines import Machine
from berth.components.hardware.names import (
    ACCELERATOR_LABEL,
    ARCHITECTURE,
    GPU_RESOURCE,
    METADATA_SERVER_LABEL,
    POOL_LABEL,
)
from berth.lab.plugins.gcp.locations import region_of
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.store import StoredRecord

# On each node: what the pool gave it, so that a change of the pool takes away just that.
LABELS_ANNOTATION = "node.gke.io/last-applied-node-labels"
TAINTS_ANNOTATION = "node.gke.io/last-applied-node-taints"

GPU_TAINT = {"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"}

_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
_NAME_LENGTH = 63
_ALPHABET = "0123456789bcdfghjklmnpqrstvwxz"
_SYSTEMS = {"cos": "Container-Optimized OS from Google", "ubuntu": "Ubuntu"}
_DRIVER_LABELS = {"DEFAULT": "default", "LATEST": "latest"}


def group_name(pool: StoredRecord, zone: str) -> str:
    """Return a pool's managed instance group in one zone: the nodes' prefix, without `-grp`."""
    cluster = pool.id.split("/")[5]
    digest = hashlib.sha256(
        f"{pool.id}@{zone}#{pool.state.get('generation', 0)}".encode()
    ).hexdigest()[:8]
    prefix = f"gke-{cluster}-{pool.name}"[: _NAME_LENGTH - 14].rstrip("-")
    return f"{prefix}-{digest}"


def node_name(pool: StoredRecord, zone: str, number: int) -> str:
    """The name of a pool's node, the same whenever it is asked for."""
    group = group_name(pool, zone)
    digest = hashlib.sha256(f"{group}/{number}".encode()).digest()
    return f"{group}-{''.join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:4])}"


def expected(pool: StoredRecord) -> dict[str, tuple[str, int]]:
    """Return zone and number of each node of the pool by name, oldest first in each zone."""
    instances: dict[str, list[int]] = pool.state.get("instances") or {}
    return {
        node_name(pool, zone, number): (zone, number)
        for zone, numbers in instances.items()
        for number in numbers
    }


def resize(pool: StoredRecord, sizes: dict[str, int]) -> None:
    """Resize the pool's instances: new ones get the lowest free number, the newest go first."""
    instances: dict[str, list[int]] = pool.state.setdefault("instances", {})
    for zone in [zone for zone in instances if zone not in sizes]:
        del instances[zone]
    for zone, size in sizes.items():
        numbers = instances.setdefault(zone, [])
        del numbers[size:]
        free = (number for number in range(size + len(numbers)) if number not in numbers)
        numbers.extend(next(free) for _ in range(size - len(numbers)))


def sizes_of(pool: StoredRecord) -> dict[str, int]:
    """Instances by zone."""
    return {zone: len(numbers) for zone, numbers in (pool.state.get("instances") or {}).items()}


def labels(pool: StoredRecord, zone: str, name: str) -> dict[str, str]:
    """The labels of one node: Kubernetes' and GKE's, then the pool's own."""
    read = PoolInputs(pool.inputs)
    machine = read.machine
    result = {
        "cloud.google.com/gke-boot-disk": read.disk_type,
        "cloud.google.com/gke-container-runtime": "containerd",
        POOL_LABEL: pool.name,
        "cloud.google.com/gke-os-distribution": read.os_distribution,
        "cloud.google.com/machine-family": machine.family,
        # berth's node pools have GKE_METADATA, always.
        METADATA_SERVER_LABEL: "true",
        ARCHITECTURE: architecture(machine),
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.gke.io/zone": zone,
        "topology.kubernetes.io/region": region_of(zone),
        "topology.kubernetes.io/zone": zone,
    }
    if machine.gpus:
        result[ACCELERATOR_LABEL] = machine.gpu.accelerator
        result["cloud.google.com/gke-accelerator-count"] = str(machine.gpus)
        if read.driver_version in _DRIVER_LABELS:
            result["cloud.google.com/gke-gpu-driver-version"] = _DRIVER_LABELS[read.driver_version]
    if read.ephemeral_ssds:
        result["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
    if read.network_profile:
        result["gke.networks.io/accelerator-network-profile"] = read.network_profile
    result |= _provisioning_labels(read)
    return result | {key: str(value) for key, value in (read.config.get("labels") or {}).items()}


def _provisioning_labels(read: PoolInputs) -> dict[str, str]:
    result = {}
    result["cloud.google.com/gke-provisioning"] = "spot" if read.spot else "standard"
    if read.spot:
        result["cloud.google.com/gke-spot"] = "true"
    if read.flex_start:
        result["cloud.google.com/gke-flex-start"] = "true"
    return result


def taints(pool: StoredRecord) -> list[dict[str, str]]:
    """The taints of the pool's nodes: its own, and GKE's.

    GKE's own for GPUs is on pools that were created beside one without GPUs, until somebody edits
    the taints. A pool that brings the same taint keeps its own.
    """
    read = PoolInputs(pool.inputs)
    result = [
        {
            "key": taint["key"],
            "value": str(taint.get("value", "")),
            "effect": _EFFECTS[taint["effect"]],
        }
        for taint in read.config.get("taints") or []
    ]
    given = any(
        (taint["key"], taint["effect"]) == (GPU_TAINT["key"], GPU_TAINT["effect"])
        for taint in result
    )
    if read.machine.gpus and pool.state.get("gpu_taint", True) and not given:
        result.append(dict(GPU_TAINT))
    if read.machine.series.arm64:
        result.append({"key": ARCHITECTURE, "value": "arm64", "effect": "NoSchedule"})
    return result


def architecture(machine: Machine) -> str:
    """The architecture of a machine's processors, as Kubernetes names it."""
    return "arm64" if machine.series.arm64 else "amd64"


def applied(pool: StoredRecord) -> dict[str, str]:
    """The annotations that say which labels and taints came from the pool."""
    own = PoolInputs(pool.inputs).config.get("labels") or {}
    return {
        LABELS_ANNOTATION: ",".join(f"{key}={value}" for key, value in sorted(own.items())),
        TAINTS_ANNOTATION: ",".join(sorted(taint_key(taint) for taint in taints(pool))),
    }


def taint_key(taint: dict[str, str]) -> str:
    """A taint as text, as `kubectl` writes it."""
    return f"{taint['key']}={taint['value']}:{taint['effect']}"


def manifest(pool: StoredRecord, zone: str, number: int, version: str) -> dict[str, Any]:
    """Return a new node, without `nvidia.com/gpu`, which the device plugin adds."""
    name = node_name(pool, zone, number)
    read = PoolInputs(pool.inputs)
    sizes = (read.machine, read.disk_gib, read.ephemeral_ssds)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {
                # The node and its pods are KWOK's to play.
                "kwok.x-k8s.io/node": "fake",
                **applied(pool),
            },
            "labels": labels(pool, zone, name),
        },
        "spec": {"providerID": f"gce://{pool.project}/{zone}/{name}", "taints": taints(pool)},
        "status": {
            "allocatable": allocatable_amounts(
                *sizes, read.max_pods, streaming=read.streams_images
            ).resources(read.max_pods),
            "capacity": node_capacity(*sizes).resources(read.max_pods),
            "nodeInfo": {
                **dict.fromkeys(("bootID", "machineID", "systemUUID"), ""),
                **dict.fromkeys(("containerRuntimeVersion", "kernelVersion"), "kwok"),
                **dict.fromkeys(("kubeProxyVersion", "kubeletVersion"), version),
                "architecture": architecture(read.machine),
                "operatingSystem": "linux",
                "osImage": f"{_SYSTEMS[read.os_distribution]} (simulated by KWOK)",
            },
        },
    }
