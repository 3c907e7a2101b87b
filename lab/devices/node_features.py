"""Labels of node feature discovery: what its worker finds on a simulated machine.

Kernel and operating system are the lab's choice of a version; which labels they give, and under which names, follows the program. Left
out: labels of the CPU, memory, network and storage, and PCI devices that are not GPUs, for nothing in the lab reads them.

Answers to (read): https://github.com/kubernetes-sigs/node-feature-discovery/tree/v0.19.0/source (system/system.go, kernel/version.go,
    pci: names and values of the labels)
Answers to (recorded): ../shared/upstream/gpu-operator/recordings N1 (PCI classes and the vendor as the only field of a PCI label),
    A1 (the labels of a COS node)
Answers to (believed): versions of kernel and operating system, by GKE's distribution. `kubectl get nodes -o wide`
    on GKE would settle it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.lab.devices.gke_device_plugin import gpus
from berth.lab.devices.gpu_operator import FEATURES, OS_NAME, OS_VERSION, PCI

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKER = {"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}
MASTER = {"app.kubernetes.io/name": "node-feature-discovery", "role": "master"}
"""Labels of the workloads that the chart brings along."""

_OS = "cloud.google.com/gke-os-distribution"
# Name, version and kernel; a node without GKE's label is taken for Ubuntu.
_SYSTEMS = {"cos": ("cos", "125", "6.12.55"), "ubuntu": ("ubuntu", "24.04", "6.8.0-1040-gke")}


def found(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a worker gives its node.

    Args:
        labels: the node's, which say what machine it is.
    """
    name, version, kernel = _SYSTEMS.get(labels.get(_OS, ""), _SYSTEMS["ubuntu"])
    numbers = kernel.partition("-")[0].split(".")
    result = {OS_NAME: name, OS_VERSION: version, FEATURES + "kernel-version.full": kernel}
    for part, number in zip(("major", "minor", "revision"), numbers, strict=True):
        result[f"{FEATURES}kernel-version.{part}"] = number
    for part, number in zip(("major", "minor"), version.split("."), strict=False):
        result[f"{OS_VERSION}.{part}"] = number
    return result | ({FEATURES + PCI[0]: "true"} if gpus(labels) else {})
