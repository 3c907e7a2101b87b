"""The cluster autoscaler, as far as the lab needs it: which pools grow for pods that fit nowhere, which nodes go.

Pure functions of objects as the API server gives them; claimed devices are amounts here (`claimed.py`). Left out: affinity between
pods, spreading, volumes.

Answers to (read): kube-scheduler v1.36.3 for what fits a node, pkg/scheduler/framework/plugins (noderesources,
    nodeaffinity, tainttoleration):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/scheduler/framework/plugins
Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/FAQ.md ("How does scale-up work?", "How does
    scale-down work?"):
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/FAQ.md
Answers to (believed): a node goes only when nothing but pods of DaemonSets is left on it; the real one also empties
    little used nodes, but none with pods of a custom controller such as KubeRay where
    skip-nodes-with-custom-controller-pods is on, as by default (pkg/simulator/drainability/rules/replicated/rule.go).
    GKE's value of that flag would settle it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kubernetes.utils.quantity import parse_quantity

from berth.lab.devices.claimed import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Object = dict[str, Any]
Amounts = dict[str, Decimal]

_FINISHED = {"Succeeded", "Failed"}


@dataclass
class Room:
    """How many more nodes there may be; shared by the places that count together."""

    left: int


@dataclass
class Place:
    """Where pods can go: a node, or what a further node of a pool would be.

    Attributes:
        name: the node's name, or the pool's path.
        labels: of the node.
        taints: of the node, as in its spec.
        free: what is left for pods, by resource.
        zone: of a further node; empty for one that is there.
        rooms: what a further node uses up.
    """

    name: str
    labels: Mapping[str, str]
    taints: list[dict[str, str]]
    free: Amounts
    zone: str = ""
    rooms: list[Room] = field(default_factory=list)


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """Quantities as numbers."""
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def requests(pod: Object) -> Amounts:
    """What a pod takes of a node, itself included."""
    total: Amounts = {"pods": Decimal(1)}
    for container in pod["spec"].get("containers") or []:
        for name, amount in amounts((container.get("resources") or {}).get("requests")).items():
            total[name] = total.get(name, Decimal(0)) + amount
    for container in pod["spec"].get("initContainers") or []:
        for name, amount in amounts((container.get("resources") or {}).get("requests")).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    for name, amount in amounts(pod["spec"].get("overhead")).items():
        total[name] = total.get(name, Decimal(0)) + amount
    return total


def fits(pod: Object, place: Place) -> bool:
    """Whether the scheduler could put the pod there."""
    spec = pod["spec"]
    return (
        selected(spec, place.labels)
        and all(_tolerated(taint, spec.get("tolerations") or []) for taint in place.taints)
        and all(place.free.get(name, Decimal(0)) >= amount for name, amount in requests(pod).items())
    )


def why_not(pod: Object, place: Place) -> str:
    """Why a further node does not help a pod, in the autoscaler's words; empty if it would."""
    spec = pod["spec"]
    for taint in place.taints:
        if not _tolerated(taint, spec.get("tolerations") or []):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not selected(spec, place.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    for name, amount in requests(pod).items():
        if place.free.get(name, Decimal(0)) < amount:
            return "cannot allocate all claims" if name in KINDS else f"Insufficient {name}"
    return "" if all(room.left > 0 for room in place.rooms) else "max node group size reached"


def selected(spec: Object, labels: Mapping[str, str]) -> bool:
    """Whether a pod with this spec may be on a node with these labels."""
    wanted = spec.get("nodeSelector") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and _affine(spec, labels)


def _affine(spec: Object, labels: Mapping[str, str]) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(
        not term.get("matchFields") and all(_matches(rule, labels) for rule in term.get("matchExpressions") or [])
        for term in required["nodeSelectorTerms"]
    )


def _matches(rule: Object, labels: Mapping[str, str]) -> bool:
    there, values = labels.get(rule["key"]), rule.get("values") or []
    operator = rule["operator"]
    if operator in {"Gt", "Lt"}:
        if there is None or not there.isdecimal():
            return False
        return int(there) > int(values[0]) if operator == "Gt" else int(there) < int(values[0])
    answers = {
        "In": there in values,
        "NotIn": there not in values,
        "Exists": there is not None,
        "DoesNotExist": there is None,
    }
    return answers[operator]


def tolerated(taints: Iterable[Mapping[str, str]], spec: Object) -> bool:
    """Whether a pod with this spec may be on a node with these taints."""
    return all(_tolerated(taint, spec.get("tolerations") or []) for taint in taints)


def _tolerated(taint: Mapping[str, str], tolerations: list[Object]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    return any(
        toleration.get("effect") in (None, "", taint.get("effect"))
        and toleration.get("key") in (None, "", taint["key"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in tolerations
    )


def unschedulable(pod: Object) -> bool:
    """Whether the scheduler has tried the pod and found no node, and a new node could help."""
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        return False
    return any(
        condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
        for condition in (pod.get("status") or {}).get("conditions") or []
    )


def places(nodes: Iterable[Object], pods: Iterable[Object]) -> list[Place]:
    """The open nodes, with what their pods leave free."""
    found = {
        node["metadata"]["name"]: Place(
            node["metadata"]["name"],
            node["metadata"].get("labels") or {},
            node["spec"].get("taints") or [],
            amounts((node.get("status") or {}).get("allocatable")),
        )
        for node in nodes
        if not node["spec"].get("unschedulable")
    }
    for pod in pods:
        place = found.get(pod["spec"].get("nodeName") or "")
        if place is not None and (pod.get("status") or {}).get("phase") not in _FINISHED:
            _take(place, pod)
    return list(found.values())


@dataclass
class Growth:
    """What pending pods need.

    Attributes:
        added: further nodes, by the pool's path and the zone.
        awaited: nodes that are there, and that a pending pod can go to by now.
        triggers: the pods that a pool and zone grows for.
        unplaced: the pods that no further node would help.
    """

    added: dict[tuple[str, str], int] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    triggers: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    unplaced: list[Object] = field(default_factory=list)


def growth(pending: Iterable[Object], there: list[Place], further: list[Place]) -> Growth:
    """Which nodes to add for pods.

    Args:
        pending: pods that the scheduler found no node for.
        there: the open nodes; a pod that fits one of them by now needs no new one.
        further: what one more node would be, for each pool and zone, in the order of preference.
    """
    result = Growth()
    places_now = list(there)
    for pod in pending:
        found = next((place for place in places_now if fits(pod, place)), None)
        if found is not None and (found.name, found.zone) in result.triggers:
            result.triggers[found.name, found.zone].append(pod)
        elif found is not None:
            result.awaited.add(found.name)
        else:
            model = next(
                (place for place in further if all(room.left > 0 for room in place.rooms) and fits(pod, place)), None
            )
            if model is None:
                result.unplaced.append(pod)
                continue
            for room in model.rooms:
                room.left -= 1
            found = Place(model.name, model.labels, model.taints, dict(model.free), model.zone)
            places_now.append(found)
            key = (model.name, model.zone)
            result.added[key] = result.added.get(key, 0) + 1
            result.triggers.setdefault(key, []).append(pod)
        _take(found, pod)
    return result


def _take(place: Place, pod: Object) -> None:
    for name, amount in requests(pod).items():
        place.free[name] = place.free.get(name, Decimal(0)) - amount


def idle(nodes: Iterable[str], pods: Iterable[Object]) -> set[str]:
    """The nodes on which nothing runs but what runs on every node."""
    busy = {
        pod["spec"].get("nodeName")
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in _FINISHED
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])
    }
    return {name for name in nodes if name not in busy}
