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


@dataclass
class Plan:
    """Changes that one reconcile of the controller makes."""

    labels: dict[str, dict[str, str | None]] = field(default_factory=dict)  # to set, or (None) to remove, by node
    create: list[Object] = field(default_factory=list)  # DaemonSets
    replace: list[Object] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)  # runtime classes to create where they are missing
    drop: set[str] = field(default_factory=set)  # runtime classes to delete
    status: Object = field(default_factory=dict)  # status of the ClusterPolicy, without times


class Controller:
    """Memory of the controller: the nodes and the ClusterPolicy as it saw them last."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] | None = None
        self._policy: tuple[str, int] = ("", 0)
        self._unknown: list[str] = []

    def stop(self) -> None:
        """Forget everything: the operator does not run, or there is no ClusterPolicy."""
        self._labels = None

    def plan(
        self,
        nodes: Mapping[str, Mapping[str, str]],
        policy: Object,
        namespace: str,
        daemonsets: Mapping[str, Object],
        held: Collection[str],
    ) -> Plan:
        """Return the changes that the controller makes now.

        Args:
            nodes: labels of the nodes, by name.
            policy: the ClusterPolicy.
            namespace: the operator's.
            daemonsets: DaemonSets of the operator, by name.
            held: names of DaemonSets with a pod that is not ready.
        """
        settings, plan = Policy(policy.get("spec") or {}), Plan()
        key = (policy["metadata"]["uid"], policy["metadata"].get("generation") or 0)
        before = self._labels if self._policy == key else None
        if before is None or any(gpu_operator.relabels(before.get(name), nodes[name]) for name in nodes):
            changes = {name: gpu_operator.node_labels(nodes[name], settings) for name in sorted(nodes)}
            plan.labels = {name: change for name, change in changes.items() if change}
        nodes = {name: _patched(labels, plan.labels.get(name, {})) for name, labels in nodes.items()}
        self._labels, self._policy = dict(nodes), key
        found, states = gpu_operator.findings(nodes), []
        if not found.failure:
            plan.classes, plan.drop = gpu_operator.runtime_classes(settings)
        for operand in OPERANDS if not found.failure else ():
            present, ready = daemonsets.get(operand.name), True
            if not operand.on(settings):
                plan.delete += [operand.name] if present is not None else []
                continue
            if not found.gpu_nodes:
                continue
            target = daemonset(operand, settings, policy, namespace, found.system)
            if present is None:
                plan.create.append(target)
            elif _hash(present) != _hash(target):
                plan.replace.append(target)
                ready = False
            else:
                ready = gpu_operator.rolled_out(present)
            if not ready or operand.name in held:
                states.append(operand.step)
        plan.status = gpu_operator.status(namespace, found, states)
        return plan

    def act(
        self,
        api: Api,
        nodes: list[Object],
        policy: Object,
        namespace: str,
        daemonsets: Mapping[str, Object],
        held: Collection[str],
    ) -> None:
        """Reconcile the cluster, with arguments as of `plan`."""
        unknown = Policy(policy.get("spec") or {}).unknown()
        if unknown and unknown != self._unknown:
            _log.warning("ClusterPolicy %s: unknown to the lab: %s", policy["metadata"]["name"], ", ".join(unknown))
        self._unknown = unknown
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
        plan, done = self.plan(labels, policy, namespace, daemonsets, held), False
        try:
            done = _apply(api, plan, policy, namespace)
        finally:
            if not done:
                # What was not done must be planned again.
                self.stop()


def _apply(api: Api, plan: Plan, policy: Object, namespace: str) -> bool:
    """Apply a plan; return False where an object to create or to replace has changed meanwhile."""
    for name, change in plan.labels.items():
        api.patch(f"{NODES}/{name}", {"metadata": {"labels": change}})
    present = {entry["metadata"]["name"] for entry in api.list(_CLASSES)}
    done = [api.create(_CLASSES, runtime_class(name, policy)) for name in sorted(plan.classes - present)]
    folder = within(namespace, DAEMONSETS)
    done += [api.create(folder, entry) for entry in plan.create]
    done += [api.replace(f"{folder}/{entry['metadata']['name']}", entry) for entry in plan.replace]
    for path in [f"{_CLASSES}/{name}" for name in plan.drop & present] + [f"{folder}/{name}" for name in plan.delete]:
        api.delete(path)
    if status := gpu_operator.dated(policy.get("status") or {}, plan.status, now()):
        api.patch(f"{POLICIES}/{policy['metadata']['name']}/status", {"status": status})
    return all(done)


def _patched(labels: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**labels, **change}.items() if value is not None}


def _hash(daemonset: Object) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
