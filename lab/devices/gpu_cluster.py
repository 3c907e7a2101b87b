"""Nodes, pods and DaemonSets, as the simulated programs see them."""

from collections.abc import Iterable

from berth.components.cluster.api import Object
from berth.components.cluster.nodes import untolerated_taint
from berth.lab.devices.gpus import Labels
from berth.lab.devices.scheduling import selected

_INSTALLER = "nvidia-driver-installer"
_KUBERNETES = "node.kubernetes.io/"


def is_fake(node: Object) -> bool:
    """Whether KWOK plays a node; on a real node the lab plays none of the programs."""
    metadata = node["metadata"]
    fake = (metadata.get("annotations") or {}).get("kwok.x-k8s.io/node") == "fake"
    return fake and not metadata.get("deletionTimestamp")


def runs(pod: Object) -> bool:
    """Whether a pod runs on a node, and stays."""
    running = (pod.get("status") or {}).get("phase") == "Running"
    return (
        running
        and bool(pod["spec"].get("nodeName"))
        and not pod["metadata"].get("deletionTimestamp")
    )


def is_of_daemonset(pod: Object) -> bool:
    """Whether a DaemonSet has made a pod."""
    return any(
        owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or []
    )


def runs_installer(daemonsets: Iterable[Object], labels: Labels) -> bool:
    """Whether a driver installer of Google's runs on a node with these labels."""
    installers = [entry for entry in daemonsets if entry["metadata"]["name"].startswith(_INSTALLER)]
    return any(selected(entry["spec"]["template"]["spec"], labels) for entry in installers)


def covers(daemonset: Object, node: Object) -> bool:
    """Whether a DaemonSet has a pod on a node; Kubernetes' own taints keep none of its pods off."""
    spec = daemonset["spec"]["template"]["spec"]
    taints = [
        taint
        for taint in node["spec"].get("taints") or []
        if not taint["key"].startswith(_KUBERNETES)
    ]
    labels = node["metadata"].get("labels") or {}
    return selected(spec, labels) and not untolerated_taint(taints, spec.get("tolerations") or [])
