"""Nodes of an environment's pools, with their GPUs and who holds them. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_in, gpus_of_pod
from berth.components.cluster.inventory import NOTHING, Inventory
from berth.components.cluster.nodes import is_ready
from berth.components.cluster.object_fields import labels_of
from berth.components.core.owner import OWNER_LABELS
from berth.components.hardware.names import MAINTENANCE_LABEL, POOL_LABEL


@dataclass(frozen=True)
class Holder:
    """Holder of GPUs on a node."""

    name: str
    """Engineer's id, name of the cluster, job or service; the namespace of other pods."""
    gpus: int


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    pool: str
    ready: bool
    gpus: int
    """GPUs, or shares of GPUs, that the node offers to pods."""
    holders: list[Holder]
    maintenance_at: str = ""
    """Moment at which the node goes down for maintenance of its host; "" for none."""


def nodes_of(
    pools: Sequence[str],
    nodes: Iterable[Object],
    pods: Iterable[Object],
    inventory: Inventory | None,
) -> list[Node]:
    """Return the nodes of pools, in the order of the pools.

    Without the right to see devices, `inventory` is None.
    """
    held = _gpus_held(pods)
    claimable = Counter(device.node for device in (inventory or NOTHING).devices if device.is_gpu)
    of_pools = []
    for node in nodes:
        pool = labels_of(node).get(POOL_LABEL, "")
        if pool in pools:
            name = str(node["metadata"]["name"])
            of_pools.append(_node(node, pool, held.get(name, {}), claimable[name]))
    return sorted(of_pools, key=lambda node: (pools.index(node.pool), node.name))


def _gpus_held(pods: Iterable[Object]) -> Mapping[str, Mapping[str, int]]:
    """Return the number of GPUs that pods hold, by node and holder."""
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if gpus := gpus_of_pod(pod):
            held[str(pod["spec"].get("nodeName"))][_holder_of(pod)] += gpus
    return held


def _node(node: Object, pool: str, held: Mapping[str, int], claimable: int) -> Node:
    return Node(
        name=str(node["metadata"]["name"]),
        pool=pool,
        ready=is_ready(node),
        gpus=gpus_in(node["status"].get("allocatable") or {}) + claimable,
        holders=[Holder(name, gpus) for name, gpus in sorted(held.items())],
        maintenance_at=_moment(labels_of(node).get(MAINTENANCE_LABEL, "")),
    )


def _moment(unix: str) -> str:
    """Return a time in seconds since 1970 for people; another text as it is."""
    if not unix.isdecimal():
        return unix
    return f"{datetime.fromtimestamp(int(unix), UTC):%Y-%m-%d %H:%M} UTC"


def _holder_of(pod: Object) -> str:
    labels = labels_of(pod)
    owners = [str(labels[label]) for label in OWNER_LABELS.values() if label in labels]
    return owners[0] if owners else str(pod["metadata"]["namespace"])
