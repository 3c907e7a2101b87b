"""The GPU Operator's controller at work in the lab's API server: node labels, DaemonSets, runtime classes and status.

The rules are in `gpu_operator.py` and `operand_objects.py`; this module applies them, and has the
memory that they need.

Answers to (recorded): GPU Operator v26.7.0, ../shared/upstream/gpu-operator/recordings (E1: without a GPU node no DaemonSet is made and
    none deleted; H1: one that is turned off is deleted, a runtime class that is no longer named stays; I1: only another hash of its own
    makes the operator write a DaemonSet again; K2, K3: labels are looked at when a node changes in certain ways, and at the start)
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.api import NODES
from berth.lab.devices import gpu_operator, operand_objects
from berth.lab.devices.api import Api, now
from berth.lab.devices.gpu_operator import Findings, Policy
from berth.lab.devices.operand_objects import HASH, OPERANDS

Object = dict[str, Any]

POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"

_log = logging.getLogger("berth.lab.devices.gpu")


@dataclass
class Plan:
    """Changes that one reconcile of the controller makes.

    Attributes:
        labels: labels of nodes to set, or to remove (None), by node.
        create: DaemonSets to create.
        replace: DaemonSets to write again.
        delete: names of DaemonSets to delete.
        classes: names of runtime classes to create where they are missing.
        drop: names of runtime classes to delete.
        status: status of the ClusterPolicy, without times.
    """

    labels: dict[str, dict[str, str | None]] = field(default_factory=dict)
    create: list[Object] = field(default_factory=list)
    replace: list[Object] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    drop: set[str] = field(default_factory=set)
    status: Object = field(default_factory=dict)


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
            states = _plan_operands(plan, settings, policy, namespace, daemonsets, held, found)
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
        """Reconcile the cluster.

        Raises:
            ClusterError: the API server does not answer, or refuses.
        """
        unknown = Policy(policy.get("spec") or {}).unknown()
        if unknown and unknown != self._unknown:
            _log.warning("ClusterPolicy %s: unknown to the lab: %s", policy["metadata"]["name"], ", ".join(unknown))
        self._unknown = unknown
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
        plan = self.plan(labels, policy, namespace, daemonsets, held)
        done = False
        try:
            done = _apply(api, plan, policy, namespace)
        finally:
            if not done:
                # What was not done must be planned again.
                self.stop()


def _plan_operands(
    plan: Plan,
    settings: Policy,
    policy: Object,
    namespace: str,
    daemonsets: Mapping[str, Object],
    held: Collection[str],
    found: Findings,
) -> list[str]:
    """Plan DaemonSets and runtime classes; return the states that are not ready."""
    plan.classes, plan.drop = gpu_operator.runtime_classes(settings)
    states = []
    for operand in OPERANDS:
        present = daemonsets.get(operand.name)
        if not operand.on(settings):
            plan.delete += [operand.name] if present is not None else []
        elif found.gpu_nodes:
            target = operand_objects.daemonset(operand, settings, policy, namespace, found.system)
            ready = True
            if present is None:
                plan.create.append(target)
            elif _hash(present) != _hash(target):
                plan.replace.append(target)
                ready = False
            else:
                ready = gpu_operator.rolled_out(present)
            if not ready or operand.name in held:
                states.append(operand.step)
    return states


def _apply(api: Api, plan: Plan, policy: Object, namespace: str) -> bool:
    """Apply a plan; False where something that was to be created or replaced has changed meanwhile."""
    for name, change in plan.labels.items():
        api.patch(f"{NODES}/{name}", {"metadata": {"labels": change}})
    present = {entry["metadata"]["name"] for entry in api.list(_CLASSES)}
    done = [
        api.create(_CLASSES, operand_objects.runtime_class(name, policy)) for name in sorted(plan.classes - present)
    ]
    for name in sorted(plan.drop & present):
        api.delete(f"{_CLASSES}/{name}")
    folder = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    done += [api.create(folder, daemonset) for daemonset in plan.create]
    done += [api.replace(f"{folder}/{daemonset['metadata']['name']}", daemonset) for daemonset in plan.replace]
    for name in plan.delete:
        api.delete(f"{folder}/{name}")
    status = gpu_operator.dated(policy.get("status") or {}, plan.status, now())
    if status:
        api.patch(f"{POLICIES}/{policy['metadata']['name']}/status", {"status": status})
    return all(done)


def _patched(labels: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**labels, **change}.items() if value is not None}


def _hash(daemonset: Mapping[str, Any]) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
