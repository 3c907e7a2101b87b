"""Rules of placement: zones of nodes, compact placement, RDMA networks."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Path, Problem
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings

_POOLS: Path = ("environment", "pools")


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return zones, placement and RDMA networks that contradict each other."""
    if settings.cluster.existing:
        return
    for name, pool in settings.pools.items():
        path = (*_POOLS, name)
        zones = settings.zones_of(pool)
        yield from _even(pool, zones, path)
    yield from _rdma_together(settings)


def _even(pool: PoolSettings, zones: tuple[str, ...], path: Path) -> Iterable[Problem]:
    """Refuse a fixed number of nodes that is not the same in each zone."""
    if isinstance(pool.nodes, Bounds) or len(zones) < 2 or pool.nodes % len(zones) == 0:  # noqa: PLR2004 (one zone takes all)
        return
    below = pool.nodes // len(zones) * len(zones)
    fitting = f"{below} or {below + len(zones)}" if below else str(len(zones))
    yield Problem(
        (*path, "nodes"),
        f"{pool.nodes} cannot be the same number in each of {len(zones)} zones ({', '.join(zones)}), as GKE has it;"
        f" write {fitting}, bounds such as {{min: {pool.nodes}, max: {pool.nodes}}}, or one zone: zones: [{zones[0]}]",
        rests_on=((*path, "zones"), ("environment", "zones")),
    )


def _rdma_together(settings: GkeSettings) -> Iterable[Problem]:
    """Refuse an existing RDMA network for pools of two zones."""
    networks = settings.pools_with_rdma("networks")
    if not networks or not settings.network.existing:
        return  # Each zone gets an RDMA network of its own.
    zones = {name: settings.zones_of(settings.pools[name]) for name in networks}
    first = zones[networks[0]]
    for name in networks[1:]:
        if len(first) == 1 and len(zones[name]) == 1 and zones[name] != first:
            yield Problem(
                (*_POOLS, name, "zones"),
                f"the existing RDMA network is bound to one zone, which for pool {networks[0]!r} is {first[0]}, but"
                f" this pool is in {zones[name][0]}; put both in one zone, or let berth make the networks (take"
                " `network.existing` out)",
                rests_on=(("environment", "zone"), ("environment", "zones")),
            )
