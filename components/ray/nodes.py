"""Nodes of an environment's pools, with their GPUs and who holds them. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_in, gpus_of_pod
from berth.components.cluster.inventory import NOTHING, Inventory
from berth.components.cluster.pods import is_ready
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
    """GPUs, or shares of them, that it offers to pods."""
    holders: list[Holder]
    maintenance_at: str = ""
    """Moment at which it goes down for maintenance of its host; "" for none."""


def nodes_of(
    pools: Iterable[str],
    nodes: Iterable[Object],
    pods: Iterable[Object],
    inventory: Inventory | None,
) -> list[Node]:
    """Return the nodes of pools, in the order of the pools.

    Without the right to see devices, `inventory` is None.
    """
    held: dict[str, Counter[str]] = {}
    for pod in pods:
        if gpus := gpus_of_pod(pod):
            held.setdefault(str(pod["spec"].get("nodeName")), Counter())[_holder(pod)] += gpus
    claimable = Counter(device.node for device in (inventory or NOTHING).devices if device.is_gpu)
    order = {pool: number for number, pool in enumerate(pools)}
    found = [
        Node(
            name=name,
            pool=pool,
            ready=is_ready(node),
            gpus=gpus_in(node["status"].get("allocatable") or {}) + claimable[name],
            holders=[
                Holder(holder, gpus) for holder, gpus in sorted(held.get(name, Counter()).items())
            ],
            maintenance_at=_moment(labels.get(MAINTENANCE_LABEL, "")),
        )
        for node in nodes
        for labels in [node["metadata"].get("labels") or {}]
        if (pool := labels.get(POOL_LABEL)) in order
        for name in [str(node["metadata"]["name"])]
    ]
    return sorted(found, key=lambda node: (order[node.pool], node.name))


def _moment(unix: str) -> str:
    return (
        f"{datetime.fromtimestamp(int(unix), UTC):%Y-%m-%d %H:%M} UTC" if unix.isdecimal() else unix
    )


def _holder(pod: Object) -> str:
    labels = pod["metadata"].get("labels") or {}
    owners = [str(labels[label]) for label in OWNER_LABELS.values() if label in labels]
    return owners[0] if owners else str(pod["metadata"]["namespace"])
