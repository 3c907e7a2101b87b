"""Objects that explain why RayClusters, RayJobs and RayServices are not ready, in groups."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from berth.components.cluster.api import EVENTS, NODES, PODS, Object, Reader, within
from berth.components.cluster.inventory import Inventory, inventory_of
from berth.components.cluster.mirror import Snapshot
from berth.components.hardware.names import POOL_LABEL

Key = tuple[str, str]
"""Namespace and name of a RayCluster, RayJob or RayService."""

SCALING = {"fieldSelector": "involvedObject.kind=Pod,source=cluster-autoscaler"}
"""Query for the cluster autoscaler's events about pods."""

_WARNINGS = {"fieldSelector": "type=Warning"}
_OF_CLUSTER = "ray.io/cluster"

K = TypeVar("K", bound=Hashable)
Groups = defaultdict[K, list[Object]]
"""Objects by key; none by an unknown one."""


class Evidence:
    """Objects of a cluster as they are now: a collection is listed once, by the first question.

    All questions are about one namespace; "" for any.
    """

    def __init__(self, reader: Reader, namespace: str = "") -> None:
        self._reader = Snapshot(reader)
        self._namespace = namespace
        self._found: dict[str, dict[Key, Object]] = {}

    def find(self, path: str, key: Key) -> Object | None:
        """Return an object of a collection; None if it does not exist."""
        if path not in self._found:
            self._found[path] = {key_of(item): item for item in self._list(path)}
        return self._found[path].get(key)

    def refused_claims(self, namespace: str) -> dict[str, str]:
        """Return why claims of pods cannot be created, by name of the pod."""
        events = self._refusals[namespace]
        return {event["involvedObject"]["name"]: str(event.get("message")) for event in events}

    @cached_property
    def inventory(self) -> Inventory:
        """Devices that nodes publish, and the claims on them."""
        return inventory_of(self._reader)

    def _list(self, path: str, **query: str) -> list[Object]:
        return self._reader.list(within(self._namespace, path) if self._namespace else path, **query)[0]

    @cached_property
    def pods(self) -> Groups[Key]:
        """Pods by RayCluster."""
        return _grouped(self._list(PODS), lambda pod: (pod["metadata"]["namespace"], _label(pod, _OF_CLUSTER)))

    @cached_property
    def warnings(self) -> Groups[tuple[str, str, str]]:
        """Warning events by kind, namespace and name of the object that they are about."""
        return _grouped(self._list(EVENTS, **_WARNINGS), _subject)

    @cached_property
    def _refusals(self) -> Groups[str]:
        events = self._list(EVENTS, **_WARNINGS)
        refused = (event for event in events if event.get("reason") == "FailedResourceClaimCreation")
        return _grouped(refused, lambda event: event["metadata"]["namespace"])

    @cached_property
    def scaling(self) -> Groups[str]:
        """The cluster autoscaler's events about pods, by namespace.

        During a stockout the scheduler only sees that there is no node; the autoscaler knows why
        none comes.
        """
        return _grouped(self._list(EVENTS, **SCALING), lambda event: event["metadata"]["namespace"])

    @cached_property
    def nodes(self) -> Groups[str]:
        """Nodes by pool."""
        return _grouped(self._reader.list(NODES)[0], lambda node: _label(node, POOL_LABEL))


def key_of(item: Object) -> Key:
    """Return the namespace and the name of an object."""
    return str(item["metadata"]["namespace"]), str(item["metadata"]["name"])


def _grouped(items: Iterable[Object], key: Callable[[Object], K]) -> Groups[K]:
    groups: Groups[K] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _label(item: Object, label: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(label, ""))


def _subject(event: Object) -> tuple[str, str, str]:
    about = event.get("involvedObject") or {}
    return str(about.get("kind")), str(event["metadata"].get("namespace")), str(about.get("name"))
