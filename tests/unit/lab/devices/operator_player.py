"""A player for recorded cases of the GPU Operator's controller: its decisions, on plain objects."""

import copy
from collections.abc import Mapping
from typing import Any

from berth.components.cluster.api import MERGE_PATCH
from berth.components.cluster.nodes import untolerated_taint
from berth.lab.api import Api
from berth.lab.devices.reconciler import CLASSES, reconcile
from berth.lab.devices.scheduling import selected

Object = dict[str, Any]

NAMESPACE = "gpu-operator"


class Player(Api):
    """The operator's API server in one case: nodes, a ClusterPolicy, and what is made of them."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.labels: dict[str, dict[str, str]] = {}
        self._taints: dict[str, list[Object]] = {}
        for name, node in copy.deepcopy(case["input"]["nodes"]).items():
            self._add_node(name, node["labels"], node.get("taints") or [])
        self._given = case["input"]["clusterPolicySpec"]
        metadata = {"name": "cluster-policy", "uid": "u1", "generation": 1}
        self._policy: Object = {
            "apiVersion": "nvidia.com/v1",
            "kind": "ClusterPolicy",
            "metadata": metadata,
            "spec": copy.deepcopy(self._given),
        }
        self.daemonsets: dict[str, Object] = {}
        self._classes: set[str] = set()
        self.status: Object = {}
        self._running = True
        # K3: the case's operator is stopped after its first output.
        self._stops = any("operator" in step["change"] for step in case.get("then") or [])

    def _add_node(self, name: str, labels: dict[str, str], taints: list[Object]) -> None:
        self.labels[name] = labels
        self._taints[name] = taints

    @property
    def classes(self) -> list[str]:
        return sorted(self._classes)

    def nodes_of(self, daemonset: str) -> list[str]:
        spec = self.daemonsets[daemonset]["spec"]["template"]["spec"]
        return sorted(
            name
            for name, labels in self.labels.items()
            if selected(spec, labels)
            and not untolerated_taint(self._taints[name], spec.get("tolerations") or [])
        )

    def settle(self, pending: Mapping[str, list[str]]) -> None:
        """Let the operator act until nothing changes any more.

        Args:
            pending: nodes with a pod that is not ready in the recording, by DaemonSet.
        """
        waiting = {name: nodes for name, nodes in pending.items() if nodes}
        for _ in range(8):
            before = copy.deepcopy((self.labels, self.daemonsets, self._classes, self.status))
            if self._running:
                self._act()
            self._roll_out(waiting)
            if before == (self.labels, self.daemonsets, self._classes, self.status):
                return
        raise AssertionError("the operator does not come to rest")

    def _act(self) -> None:
        reconcile(self, self._policy, NAMESPACE, copy.deepcopy(self.labels), dict(self.daemonsets))

    def patch(self, path: str, change: Any, content_type: str = MERGE_PATCH) -> bool:
        del content_type
        name = path.rsplit("/", 1)[-1]
        if name == "status":
            conditions = [without_time(condition) for condition in change["status"]["conditions"]]
            self.status = {**change["status"], "conditions": conditions}
        else:
            self.labels[name] = merged(self.labels[name], change["metadata"]["labels"])
        return True

    def create(self, path: str, manifest: Object) -> bool:
        if path == CLASSES:
            self._classes.add(manifest["metadata"]["name"])
        else:
            self.daemonsets[manifest["metadata"]["name"]] = copy.deepcopy(manifest)
        return True

    def replace(self, path: str, manifest: Object) -> bool:
        return self.create(path, manifest)

    def delete(self, path: str, **_query: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder == CLASSES:
            self._classes.discard(name)
        else:
            del self.daemonsets[name]
        return True

    def _roll_out(self, waiting: Mapping[str, list[str]]) -> None:
        """Set the statuses of DaemonSets, as a control plane and kubelets do."""
        for name, daemonset in self.daemonsets.items():
            nodes = self.nodes_of(name)
            count = len([node for node in nodes if node not in waiting.get(name, [])])
            daemonset["status"] = {
                "desiredNumberScheduled": len(nodes),
                "updatedNumberScheduled": len(nodes),
            }
            daemonset["status"] |= {
                "numberAvailable": count,
                "numberUnavailable": len(nodes) - count,
            }

    def change(self, change: Mapping[str, Any]) -> None:
        """Apply the change of a step."""
        if self._stops:
            self._running = change.get("operator") == "started"
        known = {
            "node",
            "newNode",
            "labels",
            "removeLabels",
            "clusterPolicySpec",
            "configMap",
            "data",
            "operator",
        }
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
        self._policy["spec"] = (
            copy.deepcopy(self._given) if change is None else merged(self._policy["spec"], change)
        )
        self._policy["metadata"]["generation"] += 1

    def list(self, path: str, **query: str) -> list[Object]:
        assert (path, query) == (CLASSES, {})
        return [{"metadata": {"name": name}} for name in self._classes]


def without_time(condition: Object) -> Object:
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}


def merged(thing: Any, patch: Any) -> Any:
    """A value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(thing) if isinstance(thing, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
