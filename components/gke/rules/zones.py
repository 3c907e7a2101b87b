"""Rules of zones: of the environment, of each pool, and of pools on one RDMA network."""

from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.core.types import region_of
from berth.components.core.words import are
from berth.components.gke.settings import GkeSettings

_TOP: Path = ("environment",)


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse zones that are elsewhere, named twice, or not for pools on one network."""
    if settings.cluster.existing:
        return
    yield from _listed(settings.zones if settings.region else [], settings, (*_TOP, "zones"))
    for name, pool in settings.pools.items():
        yield from _listed(pool.zones or [], settings, (*_TOP, "pools", name, "zones"))
    # Each zone gets an RDMA network of its own, unless there is one.
    on_rdma = settings.pools_with_rdma("networks") if settings.network.existing else []
    first = settings.zones_of(settings.pools[on_rdma[0]]) if on_rdma else ()
    for name, pool in settings.pools.items():
        zones = settings.zones_of(pool)
        in_each = 0 if isinstance(pool.nodes, Bounds) else pool.nodes // max(len(zones), 1)
        below = in_each * len(zones)
        yield from broken(
            beside(__file__)["pools_in_zones"],
            (*_TOP, "pools", name),
            pool=pool,
            zones=zones,
            count=len(zones),
            uneven=not isinstance(pool.nodes, Bounds) and len(zones) > 1 and below != pool.nodes,
            fitting=f"{below} or {below + len(zones)}" if below else str(len(zones)),
            on_rdma=on_rdma,
            first=first,
            apart=name in on_rdma and len(first) == len(zones) == 1 and zones != first,
        )


def _listed(zones: list[str], settings: GkeSettings, path: Path) -> Iterable[Problem]:
    elsewhere = [zone for zone in dict.fromkeys(zones) if region_of(zone) != settings.in_region]
    twice = sorted({zone for zone in zones if zones.count(zone) > 1})
    facts = {"elsewhere": elsewhere, "are": are(len(elsewhere)), "twice": twice, "region": settings.in_region}
    return broken(beside(__file__)["zones"], path, **facts)
