"""Live objects of a cluster that explain why its RayClusters, RayJobs and RayServices wait."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from berth.components.cluster.api import (
    EVENTS,
    NODES,
    PODS,
    Object,
    Reader,
    in_namespace,
)
from berth.components.cluster.inventory import Inventory, inventory_of
from berth.components.cluster.mirror import Snapshot
from berth.components.cluster.object_fields import ObjectKey, key_of, labels_of
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.live.restarts import PREEMPTIONS, REPLACEMENTS

SCALING = {"fieldSelector": "involvedObject.kind=Pod,source=cluster-autoscaler"}
"""Query for the cluster autoscaler's events about pods."""

_WARNINGS = {"fieldSelector": "type=Warning"}

K = TypeVar("K", bound=Hashable)
Groups = defaultdict[K, list[Object]]
"""Objects by key; none by an unknown one."""


class LiveObjects:
    """Objects of a cluster as they are now: a collection is listed once, by the first question.

    All questions are about one namespace; "" for any.
    """

    def __init__(self, reader: Reader, namespace: str = "") -> None:
        self._reader = Snapshot(reader)
        self._namespace = namespace
        self._by_key: dict[str, dict[ObjectKey, Object]] = {}

    def find(self, path: str, key: ObjectKey) -> Object | None:
        """Return an object of a collection; None if it does not exist."""
        if path not in self._by_key:
            self._by_key[path] = {key_of(item): item for item in self._list(path)}
        return self._by_key[path].get(key)

    @cached_property
    def inventory(self) -> Inventory:
        """Devices that nodes publish, and the claims on them."""
        return inventory_of(self._reader)

    def _list(self, path: str, **query: str) -> list[Object]:
        whole_path = in_namespace(self._namespace, path) if self._namespace else path
        return self._reader.list(whole_path, **query)[0]

    @cached_property
    def pods(self) -> Groups[ObjectKey]:
        """Pods by RayCluster."""
        return _grouped(self._list(PODS), _ray_cluster_of)

    @cached_property
    def warnings(self) -> Groups[tuple[str, str, str]]:
        """Warning events by kind, namespace and name of the object that they are about."""
        return _grouped(self._list(EVENTS, **_WARNINGS), _subject_of)

    @cached_property
    def refused_claims(self) -> dict[ObjectKey, str]:
        """Why claims of pods cannot be created, by namespace and name of the pod."""
        refused = {}
        for event in self._list(EVENTS, **_WARNINGS):
            if event.get("reason") == "FailedResourceClaimCreation":
                _, namespace, name = _subject_of(event)
                refused[namespace, name] = str(event.get("message"))
        return refused

    @cached_property
    def scaling(self) -> Groups[str]:
        """The cluster autoscaler's events about pods, by namespace.

        During a stockout the scheduler only sees that there is no node; the autoscaler knows why
        none comes.
        """
        return _grouped(self._list(EVENTS, **SCALING), lambda event: event["metadata"]["namespace"])

    @cached_property
    def replacements(self) -> Groups[ObjectKey]:
        """KubeRay's events about RayClusters, with the pods that it replaced, by RayCluster."""
        return _grouped(self._list(EVENTS, **REPLACEMENTS), lambda event: _subject_of(event)[1:])

    def pod_events(self, key: ObjectKey) -> list[Object]:
        """Return the warnings about pods of a RayCluster, gone ones too, and their preemptions."""
        namespace, name = key
        of_cluster = self._pod_events[namespace]
        # KubeRay begins the names of a RayCluster's pods with the RayCluster's.
        return [event for event in of_cluster if _subject_of(event)[2].startswith(f"{name}-")]

    @cached_property
    def _pod_events(self) -> Groups[str]:
        listed = [*self._list(EVENTS, **_WARNINGS), *self._list(EVENTS, **PREEMPTIONS)]
        of_pods = [event for event in listed if _subject_of(event)[0] == "Pod"]
        return _grouped(of_pods, lambda event: _subject_of(event)[1])

    @cached_property
    def nodes(self) -> Groups[str]:
        """Nodes by pool."""
        return _grouped(
            self._reader.list(NODES)[0], lambda node: labels_of(node).get(POOL_LABEL, "")
        )


def _grouped(items: Iterable[Object], key: Callable[[Object], K]) -> Groups[K]:
    groups: Groups[K] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _ray_cluster_of(pod: Object) -> ObjectKey:
    return pod["metadata"]["namespace"], labels_of(pod).get("ray.io/cluster", "")


def _subject_of(event: Object) -> tuple[str, str, str]:
    about = event.get("involvedObject") or {}
    return str(about.get("kind")), str(event["metadata"].get("namespace")), str(about.get("name"))
