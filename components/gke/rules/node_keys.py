"""Rules of the names that nodes carry: the pool's name, labels and taints."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules.pool import EnvironmentPool

NODE_KEYS = Rules[EnvironmentPool](PoolSettings)
"""Rules of the names that the nodes of every pool carry."""

_LONGEST_NAME = 40

# Kubernetes: "Labels and selectors", syntax
# (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/).
_KEY = re.compile(
    r"((?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")

_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io", "cloud.google.com", "gke.io")


@NODE_KEYS.problem()
def name_longer_than_gke_allows(pool: EnvironmentPool) -> str | None:
    """GKE's API limits the names of node pools."""
    if len(pool.name) > _LONGEST_NAME:
        return (
            f"{pool.name!r} has {len(pool.name)} characters; GKE allows a node pool's name"
            f" {_LONGEST_NAME}"
        )
    return None


@NODE_KEYS.problem("labels.*", "taints.*")
def keys_that_nodes_cannot_have(pool: EnvironmentPool) -> Iterator[Breach]:
    """Keys of labels and taints have a form, and some of their domains are taken.

    Kubernetes keeps kubernetes.io and k8s.io for itself ("Labels and selectors", syntax), and GKE
    its own ("Create and manage cluster and node pool labels",
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools). The
    taints of an existing cluster's nodes are described, and may be GKE's own.
    """
    for named in _node_keys(pool):
        if not _KEY.fullmatch(named.key):
            yield Breach(
                f"{named.key!r} is not a key that Kubernetes takes for a {named.kind}: up to 63"
                " letters, digits, '-', '_' and '.', with a domain and '/' before it or none, for"
                " example example.com/team",
                at=named.place,
            )
        elif (owner := _owner(named.key)) and not named.only_described:
            yield Breach(
                f"{named.key}: {owner} is reserved for GKE's and Kubernetes' own, which other"
                " settings of the pool set; take another domain, for example example.com/team",
                at=named.place,
            )


@NODE_KEYS.problem("labels.*", "taints.*")
def values_that_nodes_cannot_have(pool: EnvironmentPool) -> Iterator[Breach]:
    """Values of labels and taints have a form ("Labels and selectors", syntax)."""
    for named in _node_keys(pool):
        if not _VALUE.fullmatch(named.value):
            yield Breach(
                f"{named.value!r} is not a value that Kubernetes takes for a {named.kind}: up to 63"
                " letters, digits, '-', '_' and '.'",
                at=named.place,
            )


@NODE_KEYS.problem("taints.*")
def taints_listed_twice(pool: EnvironmentPool) -> Iterator[Breach]:
    """GKE takes a key with an effect once."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.settings.taints):
        if (taint.key, taint.effect) in seen:
            yield Breach(
                f"taint {taint.key} with {taint.effect} is listed twice; GKE takes each once",
                at=("taints", index),
            )
        seen.add((taint.key, taint.effect))


@dataclass(frozen=True)
class _NodeKey:
    """A label or taint of a pool.

    Attributes:
        place: place in the pool's settings.
        kind: noun for people.
        key: its key.
        value: its value.
        only_described: whether it is on nodes that berth does not create.
    """

    place: SettingPath
    kind: str
    key: str
    value: str
    only_described: bool = False


def _node_keys(pool: EnvironmentPool) -> Iterator[_NodeKey]:
    """Yield the labels and taints of a pool."""
    existing = pool.environment.cluster.existing is not None
    for key, value in pool.settings.labels.items():
        yield _NodeKey(("labels", key), "label", key, value)
    for index, taint in enumerate(pool.settings.taints):
        yield _NodeKey(("taints", index), "taint", taint.key, taint.value, existing)


def _owner(key: str) -> str:
    """Return the reserved domain that a key belongs to; empty for other keys."""
    domain = key.rpartition("/")[0]
    for reserved in _RESERVED_DOMAINS:
        if domain == reserved or domain.endswith(f".{reserved}"):
            return reserved
    return ""
