"""Owners of objects in berths, by the labels of their namespaces.

The users of a berth may label their RayCluster and, through the RayCluster, their pods. They have
no right on the namespace, so only the namespace's labels say whose the objects in it are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from berth.components.cluster.api import (
    NAMESPACES,
    RAY_CLUSTERS,
    ClusterApi,
    Object,
    Reader,
    in_namespace,
)
from berth.components.cluster.object_fields import annotations_of, labels_of
from berth.components.core.owner import (
    ENVIRONMENT_LABEL,
    KEEPS_HOME,
    OWNER_LABELS,
    STACK_LABEL,
    OwnerKind,
    namespace_of,
)
from berth.components.programs.lifetimes import SETTINGS, settled

_LABELS = {ENVIRONMENT_LABEL, STACK_LABEL, *OWNER_LABELS.values()}


@dataclass(frozen=True)
class Owner:
    """Owner of a berth."""

    kind: OwnerKind
    name: str
    """The engineer's id, or the name of the cluster, job or service."""
    environment: str
    stack: str
    keeps_home: bool = False
    """The namespace stays with the home when the berth goes."""
    lifecycle: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the namespace with the lifecycle of the berth."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the owner's objects."""
        return {
            ENVIRONMENT_LABEL: self.environment,
            STACK_LABEL: self.stack,
            OWNER_LABELS[self.kind]: self.name,
        }


@dataclass(frozen=True)
class Owners:
    """Owners of the berths on a cluster, by namespace."""

    by_namespace: Mapping[str, Owner] = field(default_factory=dict)

    def of_environment(self, environment: str) -> Owners:
        """Return the owners of berths of an environment."""
        return self._where(lambda owner: owner.environment == environment)

    def of_stack(self, stack: str) -> Owners:
        """Return the owners of berths of a stack."""
        return self._where(lambda owner: owner.stack == stack)

    def _where(self, condition: Callable[[Owner], bool]) -> Owners:
        return Owners({key: owner for key, owner in self.by_namespace.items() if condition(owner)})

    def owner_of(self, item: Object) -> Owner | None:
        """Return the owner of an object; None outside of these berths."""
        return self.by_namespace.get(str(item["metadata"].get("namespace")))

    def labeled(self, objects: Iterable[Object]) -> list[Object]:
        """Return objects with labels and lifecycle of their owners in place of their own."""
        return [_labeled(item, self.owner_of(item)) for item in objects]

    def owned_objects(self, objects: Iterable[Object]) -> list[Object]:
        """Return the objects in these berths, with the labels of their owners."""
        return self.labeled(item for item in objects if self.owner_of(item))


def owners_of(api: Reader) -> Owners:
    """Return the owners of all berths on a cluster."""
    namespaces, _ = api.list(NAMESPACES, labelSelector=ENVIRONMENT_LABEL)
    owners = {}
    for namespace in namespaces:
        if owner := owner_of_namespace(namespace):
            owners[namespace["metadata"]["name"]] = owner
    return Owners(owners)


def owner_of_namespace(namespace: Object) -> Owner | None:
    """Return the owner of a berth by its namespace; None for a namespace that is not a berth."""
    labels = labels_of(namespace)
    annotations = annotations_of(namespace)
    for kind, label in OWNER_LABELS.items():
        if label in labels and namespace_of(labels[label]) == namespace["metadata"]["name"]:
            return Owner(
                kind=kind,
                name=labels[label],
                environment=labels.get(ENVIRONMENT_LABEL, ""),
                stack=labels.get(STACK_LABEL, ""),
                keeps_home=KEEPS_HOME in annotations,
                lifecycle=settled(annotations, {}),
            )
    return None


def ray_clusters_of(api: ClusterApi, owner: Owner) -> list[Object]:
    """Return the RayClusters in a berth, its own one first, with the labels of the owner.

    A RayCluster that a RayJob of the berth has created may be beside it.
    """
    clusters, _ = api.list(in_namespace(namespace_of(owner.name), RAY_CLUSTERS))

    def own_first(cluster: Object) -> tuple[bool, str]:
        name = cluster["metadata"]["name"]
        return name != owner.name, name

    return [_labeled(cluster, owner) for cluster in sorted(clusters, key=own_first)]


def _labeled(item: Object, owner: Owner | None) -> Object:
    """Return an object with labels and lifecycle of its owner in place of its own."""
    labels = {key: value for key, value in labels_of(item).items() if key not in _LABELS}
    if owner is None:
        return {**item, "metadata": {**item["metadata"], "labels": labels}}
    metadata = {**item["metadata"], "labels": labels | owner.labels}
    if owner.lifecycle:
        others = {key: note for key, note in annotations_of(item).items() if key not in SETTINGS}
        metadata["annotations"] = {**others, **owner.lifecycle}
    return {**item, "metadata": metadata}
