"""Capacity of a machine for Kubernetes, and the part that GKE leaves to pods.

The sums are those of GKE's own autoscaler, which has to know a node before there is one
(GoogleCloudPlatform/cluster-autoscaler at 7d25050, pkg/cloudprovider/gke/reserved.go, templates.go
and config/os-reserved.yaml, for Container-Optimized OS up to GKE 1.36). Requests of GKE's
DaemonSets come on top. From GKE 1.37 on Google may keep less memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from berth.components.core import fast_yaml
from berth.components.hardware.machines import Machine

MIB = 1 << 20
GIB = 1 << 30

DEFAULT_MAX_PODS = 110
"""Most pods on a node of GKE Standard without `maxPodsPerNode`."""

_FIGURES = fast_yaml.load_beside(__file__)


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


def node_capacity(machine: Machine, disk_gib: int, ephemeral_ssds: int) -> Amounts:
    """Return the capacity that the kubelet reports, by the boot disk and Local SSDs for pods."""
    kernel = _FIGURES["kernel_mib_arm64" if machine.series.arm64 else "kernel_mib"]
    memory = machine.memory_gib * GIB - int(_on_line(machine.memory_gib, kernel) * MIB)
    return Amounts(
        machine.vcpus * 1000,
        memory,
        _storage(disk_gib, ephemeral_ssds, machine.series.local_ssd_gb),
    )


def allocatable_amounts(
    machine: Machine, disk_gib: int, ephemeral_ssds: int, max_pods: int, *, streaming: bool = False
) -> Amounts:
    """Return the rest of `capacity` for pods after GKE's reservations; image streaming has one."""
    whole = node_capacity(machine, disk_gib, ephemeral_ssds)
    many_pods = _FIGURES["many_pods_cpu_millis"] if max_pods > DEFAULT_MAX_PODS else 0
    cpu = int(_by_rates(whole.cpu_millis, _FIGURES["cpu_millis"])) + many_pods
    streamed = _FIGURES["streaming"] if streaming else 1
    reserved = _by_rates(machine.memory_gib * 1024, _FIGURES["memory_mib"]) * streamed
    memory = int(reserved * MIB) + _FIGURES["memory_eviction_mib"] * MIB
    storage = _kube_storage(disk_gib, ephemeral_ssds) + int(
        whole.storage * _FIGURES["disk_eviction"]
    )
    return Amounts(whole.cpu_millis - cpu, whole.memory - memory, max(whole.storage - storage, 0))


def _by_rates(amount: float, rates: Sequence[tuple[float, float]]) -> float:
    """The sum of each rate over the part of the amount that it applies to."""
    ends = [start for start, _ in rates[1:]] + [amount]
    return sum(
        max(min(amount, end) - start, 0) * rate
        for (start, rate), end in zip(rates, ends, strict=True)
    )


def _on_line(size: float, measured: Sequence[tuple[float, float]]) -> float:
    """Value at a size on the line through the two measured points around it, or the last two."""
    (left, low), (right, high) = next(
        (pair for pair in pairwise(measured) if size <= pair[1][0]), measured[-2:]
    )
    return low + (size - left) * (high - low) / (right - left)


def _storage(disk_gib: int, ephemeral_ssds: int, ssd_gb: int) -> int:
    if ephemeral_ssds:
        overheads = _FIGURES["local_ssd_overhead_kib"]
        measured = next((count for count in overheads if count >= ephemeral_ssds), 24)
        return ephemeral_ssds * ssd_gb * GIB - int(overheads[measured]) * 1024
    return max(disk_gib * GIB - int(_on_line(disk_gib, _FIGURES["system_disk_mib"]) * MIB), 0)


def _kube_storage(disk_gib: int, ephemeral_ssds: int) -> int:
    if ephemeral_ssds:
        return {1: 50, 2: 75}.get(ephemeral_ssds, 100) * GIB
    disk = disk_gib * GIB
    return int(min(0.5 * disk, 6 * GIB + 0.35 * disk, 100 * GIB))
