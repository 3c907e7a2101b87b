"""Which devices GKE's own device plugin advertises on a node, by the node's labels.

GKE pages "GPUs in GKE", "GPU time-sharing" and NVIDIA's "GPU Operator with GKE": the plugin's DaemonSet runs on nodes
with `cloud.google.com/gke-accelerator`, keeps off those labelled `gke-no-default-nvidia-gpu-device-plugin=true`, and
finds GPUs once GKE has installed a driver, which it does where `cloud.google.com/gke-gpu-driver-version` is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = "nvidia.com/gpu"

# The resources that are this plugin's to set and to take away.
MANAGED = (GPU,)

_ACCELERATOR = "cloud.google.com/gke-accelerator"
_COUNT = "cloud.google.com/gke-accelerator-count"
_DRIVER = "cloud.google.com/gke-gpu-driver-version"
_OFF = "gke-no-default-nvidia-gpu-device-plugin"
_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"


def devices(labels: Mapping[str, str]) -> dict[str, int]:
    """The number of devices by extended resource name; nothing where the plugin doesn't run."""
    if _ACCELERATOR not in labels or _DRIVER not in labels or labels.get(_OFF) == "true":
        return {}
    count, clients = labels.get(_COUNT, ""), labels.get(_CLIENTS, "1")
    if not count.isdecimal() or not clients.isdecimal():
        return {}
    return {GPU: int(count) * max(int(clients), 1)}


def status_change(
    wanted: Mapping[str, int], capacity: Mapping[str, str], allocatable: Mapping[str, str]
) -> dict[str, dict[str, str | None]]:
    """A merge patch of a node's status that brings the managed resources to `wanted`; empty when they are there."""
    change: dict[str, dict[str, str | None]] = {}
    for part, now in (("capacity", capacity), ("allocatable", allocatable)):
        for name in MANAGED:
            value = str(wanted[name]) if name in wanted else None
            if now.get(name) != value:
                change.setdefault(part, {})[name] = value
    return change
