"""The one node that a machine may stand behind: then its object is left to a real kubelet."""

from pathlib import Path
from typing import Any

LABEL = ("lab-node", "real")
"""Label of the pool whose first node is real while the lab has a real node; else it is simulated
like all others."""

KUBELET_LABEL = ("lab-kubelet", "real")
"""Label of the node that is real now, for what cannot run on it: no image but those that the lab
makes can be had there."""

PLAYED = "kwok.x-k8s.io/node"
"""KWOK's annotation of the nodes that it plays."""


def file(kubeconfig: Path) -> Path:
    """Holds the name of the node that is real now."""
    return kubeconfig.parent / "real-node"


def name(kubeconfig: Path) -> str:
    """The node that is real now, or nothing."""
    try:
        return file(kubeconfig).read_text()
    except OSError:
        return ""


def disks(kubeconfig: Path) -> Path:
    """Return the folder of the real node's disks, which stay while the node is simulated."""
    return kubeconfig.parent.absolute() / "real" / "disks"


def adopted(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a node's object for a kubelet to adopt, with the pool's labels and taints only."""
    key, value = KUBELET_LABEL
    labels = {**manifest["metadata"]["labels"], key: value}
    annotations = {
        key: value for key, value in manifest["metadata"]["annotations"].items() if key != PLAYED
    }
    return {key: value for key, value in manifest.items() if key != "status"} | {
        "metadata": {**manifest["metadata"], "labels": labels, "annotations": annotations}
    }
