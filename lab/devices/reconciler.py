"""The GPU Operator's controller at work in the lab's API server: node labels, DaemonSets, runtime classes and status.

The rules are in `gpu_operator.py` and `operand_objects.py`; this module applies them, and keeps the memory that they need.

Answers to (recorded): GPU Operator v26.7.0, ../shared/upstream/gpu-operator/recordings (E1: without a GPU node no DaemonSet is made and
    none deleted; H1: one that is turned off is deleted, a runtime class that is no longer named stays; I1: only another hash of its own
    makes the operator write a DaemonSet again; K2, K3: labels are looked at when a node changes in certain ways, and at the start)
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from berth.components.cluster.api import NotFoundError, RefusedError
from berth.lab.devices import gpu_operator, operand_objects
from berth.lab.devices.cluster_events import now
from berth.lab.devices.gpu_operator import Policy
from berth.lab.devices.operand_objects import HASH, OPERANDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from berth.components.cluster.api import ClusterApi

Object = dict[str, Any]

_MERGE = "application/merge-patch+json"
_POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_DAEMONSETS = "/apis/apps/v1/namespaces/{}/daemonsets"

_log = logging.getLogger("berth.lab.devices.gpu")


@dataclass
class Plan:
    """Changes that one reconcile of the controller makes.

    Attributes:
        labels: labels of nodes to set, or to take away (None), by node.
        create: DaemonSets to create.
        replace: DaemonSets to write again.
        delete: names of DaemonSets to delete.
        classes: names of runtime classes that have to be there.
        drop: names of runtime classes that must not.
        status: the ClusterPolicy's, without times.
    """

    labels: dict[str, dict[str, str | None]] = field(default_factory=dict)
    create: list[Object] = field(default_factory=list)
    replace: list[Object] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    drop: set[str] = field(default_factory=set)
    status: Object = field(default_factory=dict)


class Controller:
    """The controller's memory: the nodes and the ClusterPolicy as it saw them last."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] | None = None
        self._policy: tuple[str, int] = ("", 0)

    def stop(self) -> None:
        """The operator does not run: what it remembers is lost."""
        self._labels = None

    def plan(
        self,
        nodes: Mapping[str, Mapping[str, str]],
        policy: Object,
        namespace: str,
        there: Mapping[str, Object],
        held: Collection[str],
    ) -> Plan:
        """Changes that the controller makes now.

        Args:
            nodes: the nodes' labels, by name.
            policy: the ClusterPolicy.
            namespace: the operator's.
            there: the operator's DaemonSets, by name.
            held: names of DaemonSets with a pod that is not ready.
        """
        settings, plan = Policy(policy.get("spec") or {}), Plan()
        known = (policy["metadata"]["uid"], policy["metadata"].get("generation") or 0)
        before = self._labels if self._policy == known else None
        if before is None or any(gpu_operator.relabels(before.get(name), nodes[name]) for name in nodes):
            changes = {name: gpu_operator.node_labels(nodes[name], settings) for name in sorted(nodes)}
            plan.labels = {name: change for name, change in changes.items() if change}
        nodes = {name: _patched(labels, plan.labels.get(name, {})) for name, labels in nodes.items()}
        self._labels, self._policy = dict(nodes), known
        found = gpu_operator.findings(nodes)
        states = [] if found.failure else self._operands(plan, settings, policy, namespace, there, held, found)
        plan.status = gpu_operator.status(namespace, found, states)
        return plan

    @staticmethod
    def _operands(
        plan: Plan,
        settings: Policy,
        policy: Object,
        namespace: str,
        there: Mapping[str, Object],
        held: Collection[str],
        found: gpu_operator.Findings,
    ) -> list[str]:
        """Plan DaemonSets and runtime classes; the states that are not ready."""
        plan.classes, plan.drop = gpu_operator.runtime_classes(settings)
        states = []
        for operand in OPERANDS:
            now_there = there.get(operand.name)
            if not operand.on(settings):
                plan.delete += [operand.name] if now_there is not None else []
            elif found.gpu_nodes:
                wanted = operand_objects.daemonset(operand, settings, policy, namespace, found.system)
                same = now_there is not None and _hash(now_there) == _hash(wanted)
                if now_there is None:
                    plan.create.append(wanted)
                elif not same:
                    plan.replace.append(wanted)
                ready = same and now_there is not None and gpu_operator.rolled_out(now_there)
                if operand.name in held or (now_there is not None and not ready):
                    states.append(operand.state)
        return states


class Reconciler:
    """Applies the controller's plans to the lab's API server."""

    def __init__(self) -> None:
        self._controller = Controller()
        self._unknown: tuple[str, ...] = ()

    def stop(self) -> None:
        """The operator does not run, or there is no ClusterPolicy."""
        self._controller.stop()

    def act(
        self,
        cluster: ClusterApi,
        nodes: list[Object],
        policy: Object,
        namespace: str,
        there: Mapping[str, Object],
        held: Collection[str],
    ) -> None:
        """Reconcile the cluster.

        Raises:
            ClusterError: the API server does not answer, or refuses.
        """
        unknown = tuple(Policy(policy.get("spec") or {}).unknown())
        if unknown and unknown != self._unknown:
            _log.warning("ClusterPolicy %s: unknown to the lab: %s", policy["metadata"]["name"], ", ".join(unknown))
        self._unknown = unknown
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
        plan = self._controller.plan(labels, policy, namespace, there, held)
        try:
            self._apply(cluster, plan, policy, namespace)
        except RefusedError:
            # What was not done must be planned again.
            self._controller.stop()
            raise

    def _apply(self, cluster: ClusterApi, plan: Plan, policy: Object, namespace: str) -> None:
        for name, change in plan.labels.items():
            _try(cluster, "PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": change}})
        classes = {each["metadata"]["name"] for each in cluster.request("GET", _CLASSES).get("items") or []}
        for name in sorted(plan.classes - classes):
            cluster.request("POST", _CLASSES, operand_objects.runtime_class(name, policy))
        for name in sorted(plan.drop & classes):
            _try(cluster, "DELETE", f"{_CLASSES}/{name}")
        folder = _DAEMONSETS.format(namespace)
        for daemonset in plan.create:
            cluster.request("POST", folder, daemonset)
        for daemonset in plan.replace:
            cluster.request("PUT", f"{folder}/{daemonset['metadata']['name']}", daemonset)
        for name in plan.delete:
            _try(cluster, "DELETE", f"{folder}/{name}")
        status = gpu_operator.dated(policy.get("status") or {}, plan.status, now())
        if status:
            _try(cluster, "PATCH", f"{_POLICIES}/{policy['metadata']['name']}/status", {"status": status})


def _try(cluster: ClusterApi, method: str, path: str, body: Object | None = None) -> None:
    """A request about an object that may be gone."""
    with suppress(NotFoundError):
        cluster.request(method, path, body, content_type=_MERGE) if body else cluster.request(method, path)


def _patched(labels: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    changed: dict[str, str | None] = {**labels, **change}
    return {name: value for name, value in changed.items() if value is not None}


def _hash(daemonset: Mapping[str, Any]) -> str:
    return str((daemonset["metadata"].get("annotations") or {}).get(HASH) or "")
