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
from dataclasses import dataclass, field

from berth.components.cluster.api import NODES, Object, within
from berth.lab.devices import gpu_operator
from berth.lab.devices.api import DAEMONSETS, Api, now
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.operand_objects import HASH, OPERANDS, daemonset, runtime_class

POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"

_log = logging.getLogger("berth.lab.devices.gpu")

Labels = dict[str, dict[str, str]]
"""Labels of nodes, by the nodes' names."""


@dataclass
class Decision:
    """Changes that the controller makes at one look.

    Attributes:
        labels: labels to set on a node, or to remove (None), by the node's name.
        classes_gone: runtime classes to delete, if they are there.
        classes: runtime classes to create.
        gone: DaemonSets to delete.
        created: DaemonSets to create.
        replaced: DaemonSets to write again.
        status: the ClusterPolicy's status, without times.
    """

    labels: dict[str, dict[str, str | None]] = field(default_factory=dict)
    classes_gone: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    gone: list[str] = field(default_factory=list)
    created: list[Object] = field(default_factory=list)
    replaced: list[Object] = field(default_factory=list)
    status: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """Objects of the cluster that the controller looks at.

    Attributes:
        labels: of all nodes.
        policy: the ClusterPolicy.
        namespace: the operator's.
        daemonsets: DaemonSets of the operator, by name.
        held: names of DaemonSets with a pod that is not ready.
    """

    labels: Labels
    policy: Object
    namespace: str
    daemonsets: Mapping[str, Object]
    held: Collection[str]


class Memory:
    """The nodes and the ClusterPolicy as the controller saw them last; sends no request."""

    def __init__(self) -> None:
        self._labels: Labels | None = None
        self._policy: tuple[str, int] = ("", 0)

    def forget(self) -> None:
        """Forget everything: the operator does not run, or what it did was not all done."""
        self._labels = None

    def decide(self, seen: Seen) -> Decision:
        """Return the changes that the controller makes."""
        settings, policy = Policy(seen.policy.get("spec") or {}), seen.policy
        decision = Decision(labels=self._label(seen, settings))
        found = gpu_operator.findings(self._labels or {})
        states = []
        if not found.failure:
            decision.classes, decision.classes_gone = gpu_operator.runtime_classes(settings)
            for operand in OPERANDS:
                present, on = seen.daemonsets.get(operand.name), operand.on(settings)
                ready = True
                if not on:
                    decision.gone += [operand.name] if present is not None else []
                elif found.gpu_nodes:
                    target = daemonset(operand, settings, policy, seen.namespace, found.system)
                    if present is None:
                        decision.created.append(target)
                    elif _hash(present) != _hash(target):
                        decision.replaced.append(target)
                        ready = False
                    else:
                        ready = gpu_operator.rolled_out(present)
                    if not ready or operand.name in seen.held:
                        states.append(operand.step)
        decision.status = gpu_operator.status(seen.namespace, found, states)
        return decision

    def _label(self, seen: Seen, settings: Policy) -> dict[str, dict[str, str | None]]:
        """Return changes of nodes' labels, where they are due; remember the labels after them."""
        changes: dict[str, dict[str, str | None]] = {}
        labels, metadata = {name: dict(found) for name, found in seen.labels.items()}, seen.policy["metadata"]
        key = (metadata["uid"], metadata.get("generation") or 0)
        before = self._labels if self._policy == key else None
        if before is None or any(gpu_operator.relabels(before.get(name), labels[name]) for name in labels):
            for name in sorted(labels):
                if change := gpu_operator.node_labels(labels[name], settings):
                    changes[name] = change
                    after = {**labels[name], **change}
                    labels[name] = {label: value for label, value in after.items() if value is not None}
        self._labels, self._policy = labels, key
        return changes


class Controller:
    """The controller in a cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._memory = Memory()
        self._unknown: list[str] = []

    def stop(self) -> None:
        """Forget everything: the operator does not run, or there is no ClusterPolicy."""
        self._memory.forget()

    def act(self, seen: Seen) -> None:
        """Reconcile the cluster."""
        unknown = Policy(seen.policy.get("spec") or {}).unknown()
        if unknown != self._unknown:
            name = seen.policy["metadata"]["name"]
            _log.warning("ClusterPolicy %s: unknown to the lab: %s", name, ", ".join(unknown))
            self._unknown = unknown
        done = False
        try:
            done = self._write(seen, self._memory.decide(seen))
        finally:
            if not done:
                # The rest is done at the next look.
                self.stop()

    def _write(self, seen: Seen, decision: Decision) -> bool:
        """Make the changes; return False where somebody else was faster."""
        for name, change in decision.labels.items():
            self._api.patch(f"{NODES}/{name}", {"metadata": {"labels": change}})
        present = {entry["metadata"]["name"] for entry in self._api.list(_CLASSES)}
        folder = within(seen.namespace, DAEMONSETS)
        for path in [f"{_CLASSES}/{name}" for name in decision.classes_gone & present]:
            self._api.delete(path)
        for name in decision.gone:
            self._api.delete(f"{folder}/{name}")
        classes = [runtime_class(name, seen.policy) for name in sorted(decision.classes - present)]
        done = [self._api.create(_CLASSES, manifest) for manifest in classes]
        done += [self._api.create(folder, target) for target in decision.created]
        done += [self._api.replace(f"{folder}/{target['metadata']['name']}", target) for target in decision.replaced]
        if status := gpu_operator.dated(seen.policy.get("status") or {}, decision.status, now()):
            self._api.patch(f"{POLICIES}/{seen.policy['metadata']['name']}/status", {"status": status})
        return all(done)


def _hash(daemonset: Object) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
