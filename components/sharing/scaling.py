"""Rules of GKE's cluster autoscaler: pools that it can never grow, or grows only in some states."""

from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Problem
from berth.components.core.table import beside, broken
from berth.components.gke import PoolSettings
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.sharing.modes import WHOLE, Facts
from berth.components.sharing.pools import SharingSettings

# Defaults of the flags ok-total-unready-count and max-total-unready-percentage
# (pkg/config/flags/flags.go).
_UNREADY_NODES, _UNREADY_PERCENT = 3, 45


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Return pools whose autoscaling can never work."""
    return () if settings.cluster.existing else _of_pools("never_scaled", settings)


def warnings(settings: SharingSettings) -> Iterable[Problem]:
    """Return pools that scale in some states only, or never on an existing cluster."""
    if settings.cluster.existing:
        yield from _of_pools("never_scaled", settings)
    yield from _of_pools("scaled_sometimes", settings)
    yield from _stopped(settings)


def _of_pools(table: str, settings: SharingSettings) -> Iterable[Problem]:
    for name, pool in _scaled(settings):
        way = f"write nodes: {{min: 1, max: {pool.nodes_at_most}}}, or a number of nodes"
        if pool.capacity.kind == "flex-start":
            without = "write `rdma: none`" if pool.rdma == "networks" else "take `gpuAllocation` out"
            way = f"take machines that can stay (a reservation or spot) with one node or more, or {without}"
        facts = {"facts": _facts(pool, settings), "unseen": _unseen(pool, settings), "way": way}
        yield from broken(beside(__file__)[table], ("environment", "pools", name), pool=pool, **facts)


def _scaled(settings: SharingSettings) -> list[tuple[str, PoolSettings]]:
    return [
        (name, pool)
        for name, pool in settings.pools.items()
        if isinstance(pool.nodes, Bounds) and pool.nodes.min < pool.nodes.max
    ]


def _facts(pool: PoolSettings, settings: SharingSettings) -> Facts:
    return (settings.sharing.get(pool.sharing or "", WHOLE) if pool.by_operator else WHOLE).facts


def _unseen(pool: PoolSettings, settings: SharingSettings) -> str:
    """Return the resource that nodes advertise instead of nvidia.com/gpu; empty for none."""
    resource = _facts(pool, settings).resource
    return "" if resource == GPU_RESOURCE else resource


def _stopped(settings: SharingSettings) -> Iterable[Problem]:
    """Return nodes that count as broken, of which some stop the autoscaling of all pools."""
    scaled = [name for name, pool in _scaled(settings) if not _unseen(pool, settings)]
    unseen = {name: pool.nodes_at_most for name, pool in settings.pools.items() if _unseen(pool, settings)}
    lost = sum(unseen.values())
    seen = sum(pool.nodes_at_least for name, pool in settings.pools.items() if name not in unseen)
    if scaled and lost > _UNREADY_NODES and lost * 100 > _UNREADY_PERCENT * (lost + seen):
        facts = {"unseen": list(unseen), "scaled": scaled, "nodes": _UNREADY_NODES, "percent": _UNREADY_PERCENT}
        yield from broken(
            beside(__file__)["stopped"], ("environment", "pools", next(iter(unseen))), count=lost, **facts
        )
