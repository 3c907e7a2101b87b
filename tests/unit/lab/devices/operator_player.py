"""A player for recorded cases of the GPU Operator's controller, with a small cluster.

The cluster does automatically what a real one does:
a DaemonSet's pods go where its selector and tolerations let them, and run.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from berth.components.cluster.scheduling import selected, untolerated
from berth.lab.devices.reconciler import Controller

Object = dict[str, Any]
NAMESPACE = "gpu-operator"


class Player:
    """One case: a cluster, and the operator in it."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.nodes = copy.deepcopy(case["input"]["nodes"])
        self.spec: Object = copy.deepcopy(case["input"]["clusterPolicySpec"])
        self._given = copy.deepcopy(self.spec)
        self._generation = 1
        self._controller = Controller()
        self._running = True
        self.daemonsets: dict[str, Object] = {}
        self.classes: set[str] = set()
        self.status: Object = {}
        self.pods: dict[str, list[str]] = {}
        self.pending: dict[str, list[str]] = {}
        # K3: the case's operator is stopped after its first output.
        self._stops = any("operator" in step["change"] for step in case.get("then") or [])

    def settle(self, pending: Mapping[str, list[str]]) -> None:
        """Let the operator act until nothing changes any more.

        Args:
            pending: nodes with a pod that is not ready in the recording, by DaemonSet.
        """
        self.pending = {name: nodes for name, nodes in pending.items() if nodes}
        for _ in range(8):
            before = copy.deepcopy((self.nodes, self.daemonsets, self.classes, self.status))
            if self._running:
                self._act()
            self._roll_out()
            if before == (self.nodes, self.daemonsets, self.classes, self.status):
                return
        raise AssertionError("the operator does not come to rest")

    def _act(self) -> None:
        labels = {name: node["labels"] for name, node in self.nodes.items()}
        metadata = {"name": "cluster-policy", "uid": "p", "generation": self._generation}
        policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": self.spec}
        plan = self._controller.plan(labels, policy, NAMESPACE, self.daemonsets, self.pending)
        for name, change in plan.labels.items():
            for key, value in change.items():
                if value is None:
                    del self.nodes[name]["labels"][key]
                else:
                    self.nodes[name]["labels"][key] = value
        self.classes = (self.classes | plan.classes) - plan.drop
        for daemonset in [*plan.create, *plan.replace]:
            daemonset["metadata"]["generation"] = 1
            self.daemonsets[daemonset["metadata"]["name"]] = daemonset
        for name in plan.delete:
            del self.daemonsets[name]
        self.status = plan.status

    def _roll_out(self) -> None:
        self.pods = {}
        for operand, daemonset in self.daemonsets.items():
            spec = daemonset["spec"]["template"]["spec"]
            nodes = [
                name
                for name, node in self.nodes.items()
                if selected(spec, node["labels"])
                and not untolerated(node.get("taints") or [], spec.get("tolerations") or [])
            ]
            self.pods[operand] = sorted(nodes)
            waiting = len(self.pending.get(operand, []))
            counts = {"desiredNumberScheduled": len(nodes), "updatedNumberScheduled": len(nodes)}
            counts |= {"numberAvailable": len(nodes) - waiting, "observedGeneration": 1}
            daemonset["status"] = counts | ({"numberUnavailable": waiting} if waiting else {})

    def change(self, change: Mapping[str, Any]) -> None:
        """Apply the change of a step."""
        if self._stops:
            self._running = change.get("operator") == "started"
            self._controller.stop()
        known = {"node", "newNode", "labels", "removeLabels", "clusterPolicySpec", "configMap", "data", "operator"}
        known |= {"deletedDaemonSet", "daemonSet", "nodeSelectorAdded", "allocatablePods"}
        assert change.keys() <= known, f"a change that nobody plays: {change}"
        if "newNode" in change:
            self.nodes[change["newNode"]] = {"labels": dict(change["labels"])}
        elif "node" in change:
            labels = self.nodes[change["node"]]["labels"]
            labels |= change.get("labels") or {}
            for key in change.get("removeLabels") or []:
                del labels[key]
        if "clusterPolicySpec" in change:
            self._specify(change["clusterPolicySpec"])
        if "deletedDaemonSet" in change:
            del self.daemonsets[change["deletedDaemonSet"]]
        if "nodeSelectorAdded" in change:
            template = self.daemonsets[change["daemonSet"]]["spec"]["template"]
            template["spec"]["nodeSelector"] |= change["nodeSelectorAdded"]

    def undo(self) -> None:
        """Back to the ClusterPolicy that the case began with."""
        self._specify({}, base=self._given)

    def _specify(self, change: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> None:
        self.spec = _merged(self.spec if base is None else base, change)
        self._generation += 1


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Object:
    result = copy.deepcopy(dict(base))
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merged(result[key], value) if both else copy.deepcopy(value)
    return result
