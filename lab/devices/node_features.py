"""Node feature discovery: labels that its worker finds on a machine, and that its master writes.

Kernel and operating system are the lab's choice of a version; which labels they give, and under
which names, follows the program. Left out: labels of the CPU, memory, network and storage, parts of
versions, and PCI devices that are not GPUs, for nothing in the lab reads them.
"""

from collections.abc import Mapping

from berth.components.cluster.api import Object
from berth.lab.devices.gpu_operator import FEATURES, OS_NAME, OS_VERSION, PCI
from berth.lab.devices.gpus import SYSTEM, Labels, gpu_count

_WORKER = {"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"}
OWNED = "nfd.node.kubernetes.io/feature-labels"
"""Annotation in which node feature discovery lists the labels that it gave a node."""

# Name, version and kernel; a node without GKE's label is taken for Ubuntu.
_SYSTEMS = {"cos": ("cos", "125", "6.12.55"), "ubuntu": ("ubuntu", "24.04", "6.8.0-1040-gke")}


def is_worker(daemonset: Object) -> bool:
    """Whether a DaemonSet is the chart's worker, which finds what a machine has."""
    return _WORKER.items() <= (daemonset["metadata"].get("labels") or {}).items()


def found(labels: Labels) -> dict[str, str]:
    """Return the labels that a worker finds on a node, whose labels say what machine it is."""
    name, version, kernel = _SYSTEMS.get(labels.get(SYSTEM, ""), _SYSTEMS["ubuntu"])
    result = {OS_NAME: name, OS_VERSION: version, f"{FEATURES}kernel-version.full": kernel}
    return result | ({FEATURES + PCI[0]: "true"} if gpu_count(labels) else {})


def label_change(metadata: Object, target: Mapping[str, str]) -> Object:
    """Return a patch of a node's metadata that sets these labels and removes earlier ones.

    A label that somebody else gave the node with the same value stays theirs.
    """
    present = metadata.get("labels") or {}
    listed = str((metadata.get("annotations") or {}).get(OWNED) or "")
    before = {name for name in listed.split(",") if name in present}
    labels: dict[str, str | None] = dict.fromkeys(before - target.keys())
    labels |= {name: value for name, value in target.items() if present.get(name) != value}
    owned = ",".join(sorted(target.keys() & (before | labels.keys())))
    change: Object = {"labels": labels} if labels else {}
    if owned != listed:
        change["annotations"] = {OWNED: owned or None}
    return change
