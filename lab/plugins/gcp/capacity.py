"""Capacity of a machine for Kubernetes, and the part that pods may ask for.

The reservations are those of the GKE page "Plan GKE Standard node sizes". What the kernel keeps for
itself, and what the file system of a disk costs, follow the estimates that the cluster autoscaler's
GCE provider makes for Container-Optimized OS (kubernetes/autoscaler,
`cloudprovider/gce/gce_reserved.go`): GKE's own autoscaler has to know a node before there is one.

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    (reservations), and cluster-autoscaler/cloudprovider/gce/gce_reserved.go of
    https://github.com/kubernetes/autoscaler (kernel, file systems).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

import yaml

from berth.components.hardware.facts import LOCAL_SSD_GB, Machine

MIB = 1 << 20
GIB = 1 << 30

_FIGURES = yaml.safe_load(Path(__file__).with_name("capacity.yaml").read_text())

_SMALL_MEMORY = GIB
_SMALL_MEMORY_RESERVED = 255 * MIB
_MEMORY_EVICTION = 100 * MIB
_DISK_EVICTION = 0.1


@dataclass(frozen=True)
class Amounts:
    """CPU in millicores, memory and ephemeral storage in bytes."""

    cpu_millis: int
    memory: int
    storage: int

    def resources(self, pods: int) -> dict[str, str]:
        """Return the quantities of a node's `status`."""
        cpu = f"{self.cpu_millis}m" if self.cpu_millis % 1000 else str(self.cpu_millis // 1000)
        return {
            "cpu": cpu,
            "ephemeral-storage": f"{self.storage // 1024}Ki",
            "memory": f"{self.memory // 1024}Ki",
            "pods": str(pods),
        }


def capacity(machine: Machine, disk_gib: int, ephemeral_ssds: int) -> Amounts:
    """Return the capacity that the kubelet reports.

    Args:
        machine: the machine type.
        disk_gib: size of the boot disk; it holds ephemeral storage where no Local SSD does.
        ephemeral_ssds: Local SSDs that hold ephemeral storage.
    """
    physical = machine.memory_gib * GIB
    return Amounts(machine.vcpus * 1000, physical - _kernel(physical), _storage(disk_gib, ephemeral_ssds))


def allocatable(machine: Machine, disk_gib: int, ephemeral_ssds: int) -> Amounts:
    """Return the rest of `capacity` for pods after GKE's reservations."""
    whole = capacity(machine, disk_gib, ephemeral_ssds)
    cpu = whole.cpu_millis - int(_by_rates(whole.cpu_millis, _FIGURES["cpu_millis"]))
    memory = whole.memory - _kube_memory(machine.memory_gib * GIB) - _MEMORY_EVICTION
    storage = whole.storage - _kube_storage(disk_gib, ephemeral_ssds) - int(whole.storage * _DISK_EVICTION)
    return Amounts(cpu, memory, max(storage, 0))


def _by_rates(amount: float, rates: list[tuple[float, float]]) -> float:
    """The sum of each rate over the part of the amount that it applies to."""
    ends = [start for start, _ in rates[1:]] + [amount]
    return sum(max(min(amount, end) - start, 0) * rate for (start, rate), end in zip(rates, ends, strict=True))


def _kernel(physical: int) -> int:
    """Return the memory that Linux keeps: page tables, software IO TLB, a measured correction."""
    reserved = physical // 64 + 16 * MIB
    if physical > 3 * GIB:
        reserved += 64 * MIB
    if physical <= 8 * GIB:
        reserved += 8 * MIB
    return reserved + int(min(0.00175 * physical, 248 * MIB))


def _kube_memory(physical: int) -> int:
    if physical < _SMALL_MEMORY:
        return _SMALL_MEMORY_RESERVED
    # GKE rounds to MiB.
    return int(_by_rates(physical / GIB, _FIGURES["memory_gib"]) * GIB / MIB) * MIB


def _storage(disk_gib: int, ephemeral_ssds: int) -> int:
    if ephemeral_ssds:
        overheads = _FIGURES["local_ssd_overhead_kib"]
        measured = next((count for count in overheads if count >= ephemeral_ssds), 24)
        return ephemeral_ssds * LOCAL_SSD_GB * GIB - int(overheads[measured]) * 1024
    disk = disk_gib * GIB
    partitions = ceil(0.015635 * disk) + ceil(4.148 * GIB)
    return max(disk - partitions - int(min(100 * MIB, ceil(0.001 * disk))), 0)


def _kube_storage(disk_gib: int, ephemeral_ssds: int) -> int:
    if ephemeral_ssds:
        return {1: 50, 2: 75}.get(ephemeral_ssds, 100) * GIB
    disk = disk_gib * GIB
    return int(min(0.5 * disk, 6 * GIB + 0.35 * disk, 100 * GIB))
