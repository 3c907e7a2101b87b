"""State of the programs that bear on GPUs: their DaemonSets, and their pods on each node.

Simulates nothing: it reads the cluster for the modules that do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.lab.devices import node_features
from berth.lab.devices.autoscaler import selected, tolerated
from berth.lab.devices.operand_objects import OPERANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Object = dict[str, Any]

OPERATOR = "gpu-operator"

_KUBERNETES = "node.kubernetes.io/"
_INSTALLER = "nvidia-driver-installer"


@dataclass(frozen=True)
class Seen:
    """State of the cluster at one moment.

    Attributes:
        operator: namespace of the operator that runs; empty while none does.
        installed: whether the operator's Deployment is there at all.
        daemonsets: all DaemonSets by namespace and name.
        pods: the operands' pods by node, then by the name of their DaemonSet.
        workers: nodes with a worker of node feature discovery that runs.
        master: whether a master of node feature discovery runs.
    """

    operator: str
    installed: bool
    daemonsets: Mapping[tuple[str, str], Object]
    pods: Mapping[str, Mapping[str, Object]]
    workers: frozenset[str]
    master: bool

    def operands(self) -> dict[str, Object]:
        """The operator's DaemonSets by name."""
        names = {operand.name for operand in OPERANDS}
        return {name: each for (_, name), each in self.daemonsets.items() if name in names}

    def comes(self, name: str, node: Object) -> bool:
        """Whether a DaemonSet of the operator's wants a pod on a node."""
        found = self.operands().get(name)
        return found is not None and _wants(found, node)

    def coming(self, node: Object) -> dict[str, Object]:
        """A pod for each DaemonSet of the operator's that wants one on a node, as its template has it."""
        templates = {name: each["spec"]["template"] for name, each in self.operands().items() if _wants(each, node)}
        return {name: {"metadata": {}, "spec": template["spec"]} for name, template in templates.items()}

    def installer(self, labels: Mapping[str, str]) -> bool:
        """Whether a driver installer of Google's runs on a node with these labels."""
        found = [each for (_, name), each in self.daemonsets.items() if name.startswith(_INSTALLER)]
        return any(selected(each["spec"]["template"]["spec"], labels) for each in found)

    def workers_wanted(self) -> bool:
        """Whether there is a DaemonSet of node feature discovery."""
        return any(_labelled(each, node_features.WORKER) for each in self.daemonsets.values())

    def worker_comes(self, node: Object) -> bool:
        """Whether a DaemonSet of node feature discovery wants a pod on a node."""
        return any(_labelled(each, node_features.WORKER) and _wants(each, node) for each in self.daemonsets.values())


def look(listed: Callable[..., list[Object]]) -> Seen:
    """State of the cluster now.

    Args:
        listed: gives the objects of an API path, with a query.

    Raises:
        ClusterError: the API server does not answer, or refuses.
    """
    operators = listed("/apis/apps/v1/deployments", fieldSelector=f"metadata.name={OPERATOR}")
    master = ",".join(f"{key}={value}" for key, value in node_features.MASTER.items())
    worker = ",".join(f"{key}={value}" for key, value in node_features.WORKER.items())
    masters = listed("/apis/apps/v1/deployments", labelSelector=master)
    names = ",".join(operand.name for operand in OPERANDS)
    pods: dict[str, dict[str, Object]] = {}
    for pod in listed("/api/v1/pods", labelSelector=f"app in ({names})"):
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp") and _started(pod):
            pods.setdefault(pod["spec"]["nodeName"], {})[pod["metadata"]["labels"]["app"]] = pod
    daemonsets = listed("/apis/apps/v1/daemonsets")
    return Seen(
        next((each["metadata"]["namespace"] for each in operators if _available(each)), ""),
        bool(operators),
        {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in daemonsets},
        pods,
        frozenset(pod["spec"]["nodeName"] for pod in listed("/api/v1/pods", labelSelector=worker) if _runs(pod)),
        any(_available(each) for each in masters),
    )


def _wants(daemonset: Object, node: Object) -> bool:
    """Whether a DaemonSet puts a pod on a node; Kubernetes' own taints keep none of its pods off."""
    spec = daemonset["spec"]["template"]["spec"]
    taints = [each for each in (node.get("spec") or {}).get("taints") or [] if not each["key"].startswith(_KUBERNETES)]
    return selected(spec, node["metadata"].get("labels") or {}) and tolerated(taints, spec)


def _labelled(thing: Object, labels: Mapping[str, str]) -> bool:
    return labels.items() <= (thing["metadata"].get("labels") or {}).items()


def _available(deployment: Object) -> bool:
    return ((deployment.get("status") or {}).get("availableReplicas") or 0) > 0


def _started(pod: Object) -> bool:
    """Whether KWOK has seen the pod: it runs, or the lab has said that it does not."""
    return bool((pod.get("status") or {}).get("podIP")) and (pod["status"].get("phase") in {"Running", "Pending"})


def _runs(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")
