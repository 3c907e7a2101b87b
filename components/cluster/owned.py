"""Owners of objects in berths, by the labels of their namespaces.

The users of a berth may label their RayCluster and, through the RayCluster, their pods. They have
no right on the namespace, so only the namespace's labels say whose the objects in it are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from berth.components.cluster.api import (
    NAMESPACES,
    RAY_CLUSTERS,
    ClusterApi,
    Object,
    Reader,
    in_namespace,
)
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
        return Owners(
            {
                key: owner
                for key, owner in self.by_namespace.items()
                if owner.environment == environment
            }
        )

    def of_stack(self, stack: str) -> Owners:
        """Return the owners of berths of a stack."""
        return Owners(
            {key: owner for key, owner in self.by_namespace.items() if owner.stack == stack}
        )

    def of(self, item: Object) -> Owner | None:
        """Return the owner of an object; None outside of these berths."""
        return self.by_namespace.get(str(item["metadata"].get("namespace")))

    def labeled(self, objects: Iterable[Object]) -> list[Object]:
        """Return objects with labels and lifecycle of their owners in place of their own."""
        return [_labeled(item, self.of(item)) for item in objects]

    def owned(self, objects: Iterable[Object]) -> list[Object]:
        """Return the objects in these berths, with the labels of their owners."""
        return self.labeled(item for item in objects if self.of(item))


def owners_of(api: Reader) -> Owners:
    """Return the owners of all berths on a cluster."""
    namespaces, _ = api.list(NAMESPACES, labelSelector=ENVIRONMENT_LABEL)
    return Owners(
        {
            item["metadata"]["name"]: owner
            for item in namespaces
            if (owner := owner_of_namespace(item))
        }
    )


def owner_of_namespace(namespace: Object) -> Owner | None:
    """Return the owner of a berth by its namespace; None for a namespace that is not a berth."""
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    for kind, label in OWNER_LABELS.items():
        if label in labels and namespace_of(labels[label]) == metadata["name"]:
            marks = metadata.get("annotations") or {}
            environment, stack = labels.get(ENVIRONMENT_LABEL, ""), labels.get(STACK_LABEL, "")
            return Owner(
                kind, labels[label], environment, stack, KEEPS_HOME in marks, settled(marks, {})
            )
    return None


def ray_clusters_of(api: ClusterApi, owner: Owner) -> list[Object]:
    """Return the RayClusters in a berth, its own one first, with the labels of the owner.

    A RayCluster that a RayJob of the berth has created may be beside it.
    """
    found, _ = api.list(in_namespace(namespace_of(owner.name), RAY_CLUSTERS))
    own_first = sorted(
        found,
        key=lambda cluster: (
            cluster["metadata"]["name"] != owner.name,
            cluster["metadata"]["name"],
        ),
    )
    return [_labeled(cluster, owner) for cluster in own_first]


def _labeled(item: Object, owner: Owner | None) -> Object:
    metadata = item["metadata"]
    others = {
        key: value for key, value in (metadata.get("labels") or {}).items() if key not in _LABELS
    }
    marked = {**metadata, "labels": {**others, **(owner.labels if owner else {})}}
    if owner and owner.lifecycle:
        notes = {
            key: value
            for key, value in (metadata.get("annotations") or {}).items()
            if key not in SETTINGS
        }
        marked["annotations"] = {**notes, **owner.lifecycle}
    return {**item, "metadata": marked}
