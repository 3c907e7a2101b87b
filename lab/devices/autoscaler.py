"""Rules of the cluster autoscaler: which pools grow for pods that fit no node, and which nodes go.

Pure functions of the API server's objects; claimed devices are amounts here (`node_templates.py`).

Simplified: a node goes only when nothing but pods of DaemonSets is left on it.

Answers to (read): kube-scheduler v1.36.3 for what fits a node, pkg/scheduler/framework/plugins
    (noderesources, nodeaffinity, tainttoleration):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/scheduler/framework/plugins
Answers to (read): kubernetes-sigs/cluster-autoscaler at 33c3f97b, pkg/FAQ.md ("How does scale-up
    work?", "How does scale-down work?"):
    https://github.com/kubernetes-sigs/cluster-autoscaler/blob/33c3f97bf2749b1385d9223f1f8856fe345011f7/pkg/FAQ.md
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.cluster.scheduling import Amounts, Object, amounts, requests, selected, untolerated
from berth.lab.devices.node_templates import DRIVERS

_NONE = Decimal(0)


@dataclass
class Room:
    """Number of nodes that may still be added; places that count together share one."""

    left: int


@dataclass
class Place:
    """A node, or the node that a pool would add, as pods see it."""

    name: str  # the node's, or the pool's path
    labels: Mapping[str, str]
    taints: list[dict[str, str]]
    free: Amounts  # resources that are left for pods
    zone: str = ""  # zone of a node to add; empty for one that is there
    rooms: list[Room] = field(default_factory=list)  # counters that a node to add uses up

    @property
    def open(self) -> bool:
        """Whether one more node may be added."""
        return all(room.left > 0 for room in self.rooms)

    def take(self, pod: Object) -> None:
        """Count a pod's resources as used."""
        for name, amount in requests(pod["spec"]).items():
            self.free[name] = self.free.get(name, _NONE) - amount


def fits(pod: Object, place: Place) -> bool:
    """Whether the scheduler could put the pod there."""
    return not obstacle(pod, place)


def obstacle(pod: Object, place: Place) -> str:
    """Return why a node does not help a pod, in the autoscaler's words; empty if it would."""
    spec = pod["spec"]
    if taint := untolerated(place.taints, spec.get("tolerations") or []):
        return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not selected(spec, place.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    for name, amount in requests(spec).items():
        if place.free.get(name, _NONE) < amount:
            return "cannot allocate all claims" if name in DRIVERS else f"Insufficient {name}"
    return ""


def why_not(pod: Object, place: Place) -> str:
    """Return why no further node comes for a pod, in the autoscaler's words; empty if one does."""
    return obstacle(pod, place) or ("" if place.open else "max node group size reached")


def unschedulable(pod: Object) -> bool:
    """Whether the scheduler has tried the pod and found no node, and a new node could help."""
    leaves = pod["metadata"].get("deletionTimestamp")
    return not pod["spec"].get("nodeName") and not leaves and finds_no_node(pod)


def places(nodes: Iterable[Object], pods: Iterable[Object]) -> list[Place]:
    """Open nodes, with the resources that their pods leave free."""
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
        if has_a_node(pod) and pod["spec"]["nodeName"] in found:
            found[pod["spec"]["nodeName"]].take(pod)
    return list(found.values())


@dataclass
class Growth:
    """Nodes that pending pods need."""

    added: Counter[tuple[str, str]] = field(default_factory=Counter)  # nodes to add, by the pool's path and the zone
    awaited: set[str] = field(default_factory=set)  # nodes that are there, and that a pending pod can go to by now
    triggers: dict[tuple[str, str], list[Object]] = field(default_factory=dict)  # pods that a pool and zone grows for
    unplaced: list[Object] = field(default_factory=list)  # pods that no further node would help


def growth(pending: Iterable[Object], nodes: list[Place], further: list[Place]) -> Growth:
    """Return the nodes to add for pending pods.

    A pod that fits an open node by now needs no new one. Further nodes, one of each pool and zone,
    are in the order of preference.
    """
    result, known = Growth(), list(nodes)
    for pod in pending:
        place = next((place for place in known if fits(pod, place)), None)
        if place is None:
            model = next((place for place in further if place.open and fits(pod, place)), None)
            if model is None:
                result.unplaced.append(pod)
                continue
            for room in model.rooms:
                room.left -= 1
            place = replace(model, free=dict(model.free), rooms=[])
            known.append(place)
            result.added[place.name, place.zone] += 1
        if (place.name, place.zone) in result.added:
            result.triggers.setdefault((place.name, place.zone), []).append(pod)
        else:
            result.awaited.add(place.name)
        place.take(pod)
    return result


def idle(nodes: Iterable[str], pods: Iterable[Object]) -> set[str]:
    """Nodes on which only pods of DaemonSets run."""
    busy = {
        pod["spec"]["nodeName"]
        for pod in pods
        if has_a_node(pod)
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])
    }
    return set(nodes) - busy


class IdleClock:
    """Time since when each name has been idle."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def update(self, idle_now: Iterable[str]) -> None:
        """Take note of all names that are idle now."""
        time_now = time.monotonic()
        self._since = {name: self._since.get(name, time_now) for name in idle_now}

    def longer_than(self, seconds: float) -> set[str]:
        """Names that have been idle for at least so many seconds."""
        return {name for name, since in self._since.items() if time.monotonic() - since >= seconds}
