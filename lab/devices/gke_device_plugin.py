"""Which devices GKE's own device plugin advertises on a node, by the node's labels.

The plugin's DaemonSet runs on nodes with `cloud.google.com/gke-accelerator`, keeps off those labelled
`gke-no-default-nvidia-gpu-device-plugin=true`, and finds GPUs once GKE has installed a driver, which it does where
`cloud.google.com/gke-gpu-driver-version` is set.

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/concepts/gpus and
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus
Answers to (read): https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/google-gke.html (the label that keeps it off)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.lab.devices.advertised import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCELERATOR = "cloud.google.com/gke-accelerator"
COUNT = "cloud.google.com/gke-accelerator-count"
DRIVER = "cloud.google.com/gke-gpu-driver-version"
_OFF = "gke-no-default-nvidia-gpu-device-plugin"
_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"


def kept_off(labels: Mapping[str, str]) -> bool:
    """Whether a node's GPUs are left to another plugin."""
    return labels.get(_OFF) == "true"


def gpus(labels: Mapping[str, str]) -> int:
    """The GPUs in a node; 0 without any."""
    count = labels.get(COUNT, "")
    return int(count) if ACCELERATOR in labels and count.isdecimal() else 0


def devices(labels: Mapping[str, str]) -> dict[str, int]:
    """The number of devices by extended resource name; nothing where the plugin doesn't run."""
    clients = labels.get(_CLIENTS, "1")
    if not gpus(labels) or DRIVER not in labels or kept_off(labels) or not clients.isdecimal():
        return {}
    return {GPU: gpus(labels) * max(int(clients), 1)}
