"""The GPU Operator's controller at work: node labels, DaemonSets, runtime classes and status.

The rules are in `gpu_operator.py` and `operand_objects.py`.

Answers to (recorded): GPU Operator v26.7.0, ../shared/upstream/gpu-operator/recordings (E1: without
    a GPU node no DaemonSet is made and none deleted; H1: one that is turned off is deleted, a
    runtime class that is no longer named stays; I1: only another hash of its own makes the operator
    write a DaemonSet again; K2, K3: labels are looked at when a node changes in certain ways, and
    at the start)
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from berth.components.cluster.api import NODES, Object, within
from berth.lab.devices import gpu_operator
from berth.lab.devices.api import DAEMONSETS, Api, now
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.operand_objects import HASH, OPERANDS, daemonset, runtime_class

POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"

_log = logging.getLogger("berth.lab.devices.gpu")


class Controller:
    """Memory of the controller: the nodes and the ClusterPolicy as it saw them last."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._labels: Mapping[str, Mapping[str, str]] | None = None
        self._policy: tuple[str, int] = ("", 0)
        self._unknown: list[str] = []

    def stop(self) -> None:
        """Forget everything: the operator does not run, or there is no ClusterPolicy."""
        self._labels = None

    def act(
        self,
        nodes: list[Object],
        policy: Object,
        namespace: str,
        daemonsets: Mapping[str, Object],
        held: Collection[str],
    ) -> None:
        """Reconcile the cluster.

        Args:
            nodes: nodes that the operator sees.
            policy: the ClusterPolicy.
            namespace: the operator's.
            daemonsets: DaemonSets of the operator, by name.
            held: names of DaemonSets with a pod that is not ready.
        """
        settings, done = Policy(policy.get("spec") or {}), False
        if (unknown := settings.unknown()) != self._unknown:
            _log.warning("ClusterPolicy %s: unknown to the lab: %s", policy["metadata"]["name"], ", ".join(unknown))
            self._unknown = unknown
        try:
            found = gpu_operator.findings(self._label(nodes, policy, settings))
            states, done = [], True
            if not found.failure:
                done = self._runtime_classes(settings, policy)
                for operand in OPERANDS:
                    target = daemonset(operand, settings, policy, namespace, found.system)
                    on = operand.on(settings)
                    ready = self._operand(target, daemonsets.get(operand.name), on=on, makes=found.gpu_nodes)
                    done = done and ready is not None
                    if on and found.gpu_nodes and (not ready or operand.name in held):
                        states.append(operand.step)
            status = gpu_operator.status(namespace, found, states)
            if status := gpu_operator.dated(policy.get("status") or {}, status, now()):
                self._api.patch(f"{POLICIES}/{policy['metadata']['name']}/status", {"status": status})
        finally:
            if not done:
                # The rest is done at the next look.
                self.stop()

    def _label(self, nodes: list[Object], policy: Object, settings: Policy) -> Mapping[str, Mapping[str, str]]:
        """Change labels of nodes where that is due; return the labels of all nodes."""
        labels = {node["metadata"]["name"]: dict(node["metadata"].get("labels") or {}) for node in nodes}
        key = (policy["metadata"]["uid"], policy["metadata"].get("generation") or 0)
        before = self._labels if self._policy == key else None
        if before is None or any(gpu_operator.relabels(before.get(name), labels[name]) for name in labels):
            for name in sorted(labels):
                if change := gpu_operator.node_labels(labels[name], settings):
                    self._api.patch(f"{NODES}/{name}", {"metadata": {"labels": change}})
                    after = {**labels[name], **change}
                    labels[name] = {label: value for label, value in after.items() if value is not None}
        self._labels, self._policy = labels, key
        return self._labels

    def _runtime_classes(self, settings: Policy, policy: Object) -> bool:
        """Create and delete runtime classes; return False where somebody else was faster."""
        classes, drop = gpu_operator.runtime_classes(settings)
        present = {entry["metadata"]["name"] for entry in self._api.list(_CLASSES)}
        for name in drop & present:
            self._api.delete(f"{_CLASSES}/{name}")
        return all(self._api.create(_CLASSES, runtime_class(name, policy)) for name in sorted(classes - present))

    def _operand(self, target: Object, present: Object | None, *, on: bool, makes: bool) -> bool | None:
        """Write a DaemonSet; return whether it is ready, None where somebody else was faster."""
        folder, name = within(target["metadata"]["namespace"], DAEMONSETS), target["metadata"]["name"]
        if not on:
            if present is not None:
                self._api.delete(f"{folder}/{name}")
            return True
        if not makes:
            return True
        if present is None:
            return True if self._api.create(folder, target) else None
        if _hash(present) != _hash(target):
            return False if self._api.replace(f"{folder}/{name}", target) else None
        return gpu_operator.rolled_out(present)


def _hash(daemonset: Object) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
