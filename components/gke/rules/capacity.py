"""Rules of capacity: reservations, flex-start, spot, and the settings that each excludes."""

from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Problem
from berth.components.core.table import beside, broken
from berth.components.core.types import parse_duration
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return settings of pools that their capacity excludes."""
    if settings.cluster.existing:
        return
    yield from _of_pools("capacity", settings)
    if settings.pools and all(pool.capacity.kind == "flex-start" for pool in settings.pools.values()):
        yield from broken(beside(__file__)["only_flex_start"], ("environment", "pools"))


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Return capacity that Google likely does not give."""
    return () if settings.cluster.existing else _of_pools("warnings_of_capacity", settings)


def _of_pools(table: str, settings: GkeSettings) -> Iterable[Problem]:
    for name, pool in settings.pools.items():
        yield from broken(beside(__file__)[table], ("environment", "pools", name), pool=pool, **_facts(pool))


def _facts(pool: PoolSettings) -> dict[str, object]:
    kind, nodes, sold = pool.capacity.kind, pool.nodes, pool.machine.series.sold
    longest = pool.capacity.max_run_duration
    return {
        "sold": sold,
        "buys": kind in sold or (kind == "on-demand" and "reservation" in sold),
        "hoped": kind == "on-demand" and "on-demand" not in sold and "reservation" in sold,
        "fixed": not isinstance(nodes, Bounds),
        "least": nodes.min if isinstance(nodes, Bounds) else 0,
        "most": nodes.max if isinstance(nodes, Bounds) else max(nodes, 1),
        "seconds": parse_duration(longest) if longest else None,
    }
