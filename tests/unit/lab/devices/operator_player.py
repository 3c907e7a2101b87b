"""A player for recorded cases of the GPU Operator's controller: the lab's, in a small cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from berth.lab.devices.api import Api
from berth.lab.devices.reconciler import Controller
from tests.unit.lab.devices.small_cluster import NAMESPACE, SmallCluster, merged

Object = dict[str, Any]


class Player:
    """One case: a cluster, and the operator in it."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._cluster = SmallCluster()
        self._controller = Controller(Api(self._cluster))
        for name, node in copy.deepcopy(case["input"]["nodes"]).items():
            self._add_node(name, node["labels"], node.get("taints") or [])
        self._given = case["input"]["clusterPolicySpec"]
        self._policy = self._cluster.add("clusterpolicies", "cluster-policy", spec=copy.deepcopy(self._given))
        self._policy["kind"] = "ClusterPolicy"
        self._running = True
        # K3: the case's operator is stopped after its first output.
        self._stops = any("operator" in step["change"] for step in case.get("then") or [])

    def _add_node(self, name: str, labels: dict[str, str], taints: list[Object]) -> None:
        self._cluster.add("nodes", name, labels=labels, spec={"taints": taints})

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        return {name: node["metadata"]["labels"] for name, node in self._cluster.objects["nodes"].items()}

    @property
    def daemonsets(self) -> dict[str, Object]:
        return self._cluster.objects["daemonsets"]

    @property
    def classes(self) -> list[str]:
        return sorted(self._cluster.objects["runtimeclasses"])

    @property
    def status(self) -> Object:
        status: Object = copy.deepcopy(self._cluster.objects["clusterpolicies"]["cluster-policy"]["status"])
        for condition in status["conditions"]:
            del condition["lastTransitionTime"]
        return status

    def nodes_of(self, daemonset: str) -> list[str]:
        pods = self._cluster.objects["pods"]
        return sorted(pods[name]["spec"]["nodeName"] for name in pods if name.startswith(f"{daemonset}@"))

    def settle(self, pending: Mapping[str, list[str]]) -> None:
        """Let the operator act until nothing changes any more.

        Args:
            pending: nodes with a pod that is not ready in the recording, by DaemonSet.
        """
        waiting = {name: nodes for name, nodes in pending.items() if nodes}
        for _ in range(8):
            before = self._cluster.content()
            policy, nodes = self._cluster.objects["clusterpolicies"]["cluster-policy"], self._cluster.objects["nodes"]
            if self._running:
                self._controller.act([*nodes.values()], policy, NAMESPACE, self.daemonsets, waiting)
            self._cluster.run(waiting)
            if before == self._cluster.content():
                return
        raise AssertionError("the operator does not come to rest")

    def change(self, change: Mapping[str, Any]) -> None:
        """Apply the change of a step."""
        if self._stops:
            self._running = change.get("operator") == "started"
            self._controller.stop()
        known = {"node", "newNode", "labels", "removeLabels", "clusterPolicySpec", "configMap", "data", "operator"}
        known |= {"deletedDaemonSet", "daemonSet", "nodeSelectorAdded", "allocatablePods"}
        assert change.keys() <= known, f"a change that nobody plays: {change}"
        if "newNode" in change:
            self._add_node(change["newNode"], dict(change["labels"]), [])
        elif "node" in change:
            labels = self.labels[change["node"]]
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
        """Restore the ClusterPolicy that the case began with."""
        self._specify(None)

    def _specify(self, change: Mapping[str, Any] | None) -> None:
        policy = self._cluster.objects["clusterpolicies"]["cluster-policy"]
        policy["spec"] = copy.deepcopy(self._given) if change is None else merged(policy["spec"], change)
        policy["metadata"]["generation"] += 1
