"""State of the programs that bear on GPUs: their DaemonSets, and their pods on each node.

Simulates nothing: it reads the cluster for the modules that do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.cluster import devices
from berth.components.cluster.api import PODS, Object
from berth.components.cluster.scheduling import selected, untolerated
from berth.lab.devices import node_features
from berth.lab.devices.api import DAEMONSETS, DEPLOYMENTS, Api
from berth.lab.devices.gpus import Labels, managed
from berth.lab.devices.operand_objects import OPERANDS

_OPERATOR = "gpu-operator"
_INSTALLER = "nvidia-driver-installer"
_KUBERNETES = "node.kubernetes.io/"
_DISCOVERY = ("app.kubernetes.io/name", "node-feature-discovery")
# Labels of pods that bring devices to their nodes.
_SERVING = {("app", operand.name) for operand in OPERANDS} | {_DISCOVERY}
_SERVING |= {
    (key, value) for key, _, value in (label.partition("=") for label in (devices.NETWORK_PODS, devices.GPU_PODS))
}
# Fields of a DaemonSet's status that say whether its pods are ready.
_ROLLED_OUT = ("observedGeneration", "desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")


def is_fake(node: Object) -> bool:
    """Whether KWOK plays a node; on a real node the lab plays none of the programs."""
    metadata = node["metadata"]
    fake = (metadata.get("annotations") or {}).get("kwok.x-k8s.io/node") == "fake"
    return fake and not metadata.get("deletionTimestamp")


def runs(pod: Object, phases: Collection[str] = ("Running",)) -> bool:
    """Whether a pod is on a node, in one of these phases, and stays."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in phases and bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")


def runs_installer(daemonsets: Iterable[Object], labels: Labels) -> bool:
    """Whether a driver installer of Google's runs on a node with these labels."""
    installers = [entry for entry in daemonsets if entry["metadata"]["name"].startswith(_INSTALLER)]
    return any(selected(entry["spec"]["template"]["spec"], labels) for entry in installers)


@dataclass(frozen=True)
class Programs:
    """Programs of the cluster at one moment."""

    operator: str  # namespace of the operator that runs; empty while none does
    installed: bool  # whether the operator's Deployment is there at all
    daemonsets: list[Object]  # all of the cluster
    pods: Mapping[str, Mapping[str, Object]]  # pods of operands by node, then by the name of their DaemonSet
    workers: frozenset[str]  # nodes with a worker of node feature discovery that runs
    master: bool  # whether a master of node feature discovery runs

    def operands(self) -> dict[str, Object]:
        """DaemonSets of the operator, by name."""
        names = {operand.name for operand in OPERANDS}
        return {entry["metadata"]["name"]: entry for entry in self.daemonsets if entry["metadata"]["name"] in names}

    def operands_of(self, node: Object) -> dict[str, Object]:
        """A pod, as in the template, for each DaemonSet of the operator that covers a node."""
        templates = {name: entry["spec"]["template"] for name, entry in self.operands().items() if _covers(entry, node)}
        return {name: {"metadata": {}, "spec": template["spec"]} for name, template in templates.items()}

    def discovery_workers(self) -> list[Object]:
        """DaemonSets of node feature discovery."""
        labels = ((entry, entry["metadata"].get("labels") or {}) for entry in self.daemonsets)
        return [entry for entry, own in labels if node_features.WORKER.items() <= own.items()]

    def discovers(self, node: Object) -> bool:
        """Whether a DaemonSet of node feature discovery has a pod on a node."""
        return any(_covers(entry, node) for entry in self.discovery_workers())


def look(api: Api) -> Programs:
    """Read the state of the cluster."""
    operators = api.list(DEPLOYMENTS, fieldSelector=f"metadata.name={_OPERATOR}")
    master, worker = (
        ",".join(map("=".join, labels.items())) for labels in (node_features.MASTER, node_features.WORKER)
    )
    names = ",".join(operand.name for operand in OPERANDS)
    pods: dict[str, dict[str, Object]] = {}
    for pod in api.list(PODS, labelSelector=f"app in ({names})"):
        # KWOK has seen a pod with an address: it runs, or the lab has held it.
        if runs(pod, ("Running", "Pending")) and pod["status"].get("podIP"):
            pods.setdefault(pod["spec"]["nodeName"], {})[pod["metadata"]["labels"]["app"]] = pod
    return Programs(
        next((entry["metadata"]["namespace"] for entry in operators if _available(entry)), ""),
        bool(operators),
        api.list(DAEMONSETS),
        pods,
        frozenset(pod["spec"]["nodeName"] for pod in api.list(PODS, labelSelector=worker) if runs(pod)),
        any(_available(entry) for entry in api.list(DEPLOYMENTS, labelSelector=master)),
    )


def _covers(daemonset: Object, node: Object) -> bool:
    """Whether a DaemonSet has a pod on a node; Kubernetes' own taints keep none of its pods off."""
    spec = daemonset["spec"]["template"]["spec"]
    taints = [taint for taint in node["spec"].get("taints") or [] if not taint["key"].startswith(_KUBERNETES)]
    labels = node["metadata"].get("labels") or {}
    return selected(spec, labels) and not untolerated(taints, spec.get("tolerations") or [])


def _available(deployment: Object) -> bool:
    return ((deployment.get("status") or {}).get("availableReplicas") or 0) > 0


class Observed:
    """Objects as they were seen last, so that heartbeats and others' changes can be ignored."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def changed(self, kind: str, body: Mapping[str, Any], *, gone: bool) -> bool:
        """Take note of an object; return whether it differs from before, as far as devices go."""
        part = _relevant(kind, body)
        if part is None:
            return False
        uid = body["metadata"]["uid"]
        if gone:
            self._seen.pop(uid, None)
            return True
        before, self._seen[uid] = self._seen.get(uid), hash(repr(part))
        return before != self._seen[uid]


def _relevant(kind: str, body: Mapping[str, Any]) -> Any:
    """Fields of an object that bear on devices; None for an object that does not."""
    metadata, status = body["metadata"], body.get("status") or {}
    labels = metadata.get("labels") or {}
    version = [metadata.get("generation"), metadata.get("deletionTimestamp")]
    match kind:
        case "Node":
            parts = [status.get(part) or {} for part in ("capacity", "allocatable")]
            resources = [sorted((name, value) for name, value in part.items() if managed(name)) for part in parts]
            return [sorted(labels.items()), (metadata.get("annotations") or {}).get(node_features.OWNED), resources]
        case "Pod":
            if not _SERVING & labels.items():
                return None
            return [status.get("phase"), status.get("podIP"), version[1], body["spec"].get("nodeName")]
        case "Deployment":
            ours = metadata["name"] == _OPERATOR or _DISCOVERY in labels.items()
            return [status.get("availableReplicas")] if ours else None
        case "DaemonSet":
            return version + [status.get(key) for key in _ROLLED_OUT]
    return version
