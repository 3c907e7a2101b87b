"""Rules across the settings of a GKE cluster, its networks and its node pools."""

from collections.abc import Callable, Iterable

from berth.components.core.problems import Problem
from berth.components.core.settings import written
from berth.components.core.table import beside, broken
from berth.components.core.types import location_of_key
from berth.components.gke.cluster_settings import Maintenance
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules import capacity, cluster, network, nodes, zones
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import parse

Rule = Callable[[GkeSettings], Iterable[Problem]]

_TABLES = beside(__file__)
_BREAKS_TCPX = parse("1.34.1-gke.1431000")


def contradictions(settings: GkeSettings) -> Iterable[Problem]:
    """Yield settings of the environment and its pools that contradict one another."""
    pools, network = settings.pools, settings.network
    on_rdma = settings.pools_with_rdma("networks")
    facts = {
        "settings": settings,
        "on_rdma": on_rdma,
        "on_managed": settings.pools_with_rdma("managed"),
        "labels": len(settings.labels),
        "tainted": _tainted(settings),
        "rated": [name for name, pool in pools.items() if pool.hourly_rate],
        "without_zones": sorted(name for name, pool in pools.items() if not pool.zones),
        "key_in": location_of_key(settings.cluster.secrets_encryption_key or ""),
        "beside_existing": [key for key in written(network) if key != "existing"],
        "lacking": [key for key in ("gvnic", "rdma") if getattr(network.existing, key, None) is None],
        "needed_by": f"pool {on_rdma[0]!r}" if len(on_rdma) == 1 else f"each of the pools {', '.join(on_rdma)}",
    }
    yield from broken(_TABLES["every_environment"], ("environment",), **facts)
    for name, pool in pools.items():
        yield from broken(_TABLES["gpus"], ("environment", "pools", name), pool=pool, **_attached(pool))
    if settings.cluster.existing:
        return
    yield from broken(_TABLES["environment"], ("environment",), **facts)
    for name, exclusion in (settings.cluster.maintenance or Maintenance()).exclusions.items():
        at = ("environment", "cluster", "maintenance", "exclusions", name)
        yield from broken(_TABLES["exclusions"], at, exclusion=exclusion)
    for name, pool in pools.items():
        its_zones = settings.zones_of(pool)
        of_zones = {"zones": its_zones, "several_zones": len(its_zones) > 1}
        at_once = pool.max_surge + pool.max_unavailable
        yield from broken(_TABLES["pools"], ("environment", "pools", name), pool=pool, at_once=at_once, **of_zones)


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Yield settings of pools that work in some projects or versions only."""
    cluster = settings.cluster
    if cluster.existing:
        for name, pool in settings.pools.items():
            yield from broken(_TABLES["warnings_of_existing_pools"], ("environment", "pools", name), pool=pool)
        return
    below = cluster.version is not None and not parse(cluster.version).at_least(_BREAKS_TCPX)
    held = below and bool(cluster.maintenance and cluster.maintenance.exclusions)
    for name, pool in settings.pools.items():
        yield from broken(_TABLES["warnings_of_pools"], ("environment", "pools", name), pool=pool, held=held)


def _attached(pool: PoolSettings) -> dict[str, object]:
    """Return the GPUs that a machine type takes beside its own, for the table about `gpus`."""
    attaches = pool.machine.series.attaches
    counts = attaches.get(pool.machine.gpu.accelerator, {})
    return {"types": list(attaches), "counts": list(counts), "most": counts.get(pool.machine.gpus, 0)}


def _tainted(settings: GkeSettings) -> list[str]:
    """Return the pools that should have room for other pods, if taints keep those off them all."""
    plain = {name: pool for name, pool in settings.pools.items() if not pool.machine.gpus} or settings.pools
    tainted = [name for name, pool in plain.items() if any(taint.effect != "PreferNoSchedule" for taint in pool.taints)]
    return tainted if len(tainted) == len(plain) else []


RULES: tuple[Rule, ...] = (
    contradictions,
    zones.problems,
    cluster.problems,
    network.problems,
    capacity.problems,
    nodes.problems,
)
"""Rules of what GKE and Google Cloud would refuse."""

WARNINGS: tuple[Rule, ...] = (cluster.warnings, capacity.warnings, warnings)
"""Rules of settings that work, but likely not as intended."""
