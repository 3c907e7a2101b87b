"""Rules of node pools: capacity, size, zones, GPUs, kernel settings, labels and taints."""

from collections.abc import Iterable

from berth.components.core import fast_yaml
from berth.components.core.bounds import Bounds
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.core.types import region_of
from berth.components.core.words import is_or_are
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import parse
from berth.components.programs.lifetimes import parse_duration

_TABLES = beside(__file__)
_SYSCTLS = frozenset(
    f"{group}.{name}"
    for group, names in fast_yaml.load_beside(__file__, "sysctls.yaml").items()
    for name in names
)
_BREAKS_TCPX = parse("1.34.1-gke.1431000")

# Kubernetes keeps kubernetes.io and k8s.io for itself
# (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/), and GKE its own
# ("Create and manage cluster and node pool labels",
# https://docs.cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools).
_RESERVED = ("kubernetes.io", "k8s.io", "cloud.google.com", "gke.io")


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Yield what GKE refuses of pools; those of an existing cluster are only described."""
    made = settings.cluster.existing is None
    for name, pool in settings.pools.items():
        path: SettingPath = ("environment", "pools", name)
        yield from broken(_TABLES["gpus"], path, pool=pool, **_attached(pool))
        yield from _names(name, pool, path, made=made)
        if made:
            yield from _elsewhere(pool.zones or [], settings, (*path, "zones"))
            yield from _of_made(name, pool, settings, path)
    if made:
        yield from _elsewhere(
            settings.zones if settings.region else [], settings, ("environment", "zones")
        )
        if all(pool.capacity.kind == "flex-start" for pool in settings.pools.values()):
            yield from broken(_TABLES["only_flex_start"], ("environment", "pools"))


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Yield pools that work in some projects or versions only, or that Google likely refuses."""
    if settings.cluster.existing:
        return
    version, maintenance = settings.cluster.version, settings.cluster.maintenance
    below = version is not None and not parse(version).at_least(_BREAKS_TCPX)
    held = below and bool(maintenance and maintenance.exclusions)
    for name, pool in settings.pools.items():
        for table in ("warnings_of_capacity", "warnings_of_pools"):
            yield from broken(
                _TABLES[table],
                ("environment", "pools", name),
                pool=pool,
                held=held,
                **_capacity(pool),
            )


def _attached(pool: PoolSettings) -> dict[str, object]:
    """Return the GPUs that a machine type takes beside its own, for the table about `gpus`."""
    attaches = pool.machine.series.attaches
    counts = attaches.get(pool.machine.gpu.accelerator, {})
    return {
        "types": list(attaches),
        "counts": list(counts),
        "most": counts.get(pool.machine.gpus, 0),
    }


def _of_made(
    name: str, pool: PoolSettings, settings: GkeSettings, path: SettingPath
) -> Iterable[Problem]:
    yield from broken(_TABLES["capacity"], path, pool=pool, **_capacity(pool))
    zones = settings.zones_of(pool)
    several, at_once = len(zones) > 1, pool.max_surge + pool.max_unavailable
    yield from broken(
        _TABLES["pools"], path, pool=pool, at_once=at_once, zones=zones, several_zones=several
    )
    # Each zone gets an RDMA network of its own, unless there is one.
    on_rdma = settings.pools_with_rdma("networks") if settings.network.existing else []
    first = settings.zones_of(settings.pools[on_rdma[0]]) if on_rdma else ()
    below = 0 if isinstance(pool.nodes, Bounds) else pool.nodes // max(len(zones), 1) * len(zones)
    yield from broken(
        _TABLES["pools_in_zones"],
        path,
        pool=pool,
        zones=zones,
        count=len(zones),
        uneven=not isinstance(pool.nodes, Bounds) and several and below != pool.nodes,
        fitting=f"{below} or {below + len(zones)}" if below else str(len(zones)),
        on_rdma=on_rdma,
        first=first,
        apart=name in on_rdma and len(first) == len(zones) == 1 and zones != first,
    )
    for key, value in pool.sysctls.items():
        facts = {
            "hint": did_you_mean(key, _SYSCTLS),
            "known": key in _SYSCTLS,
            "value": value.strip(),
        }
        yield from broken(_TABLES["sysctls"], (*path, "sysctls", key), name=key, **facts)


def _capacity(pool: PoolSettings) -> dict[str, object]:
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


def _elsewhere(zones: list[str], settings: GkeSettings, path: SettingPath) -> Iterable[Problem]:
    """Yield zones in a list that are in another region, or named twice."""
    elsewhere = [zone for zone in dict.fromkeys(zones) if region_of(zone) != settings.in_region]
    twice = sorted({zone for zone in zones if zones.count(zone) > 1})
    facts = {
        "elsewhere": elsewhere,
        "are": is_or_are(len(elsewhere)),
        "twice": twice,
        "region": settings.in_region,
    }
    return broken(_TABLES["zones"], path, **facts)


def _names(name: str, pool: PoolSettings, path: SettingPath, *, made: bool) -> Iterable[Problem]:
    """Yield problems of names, labels and taints; on an existing cluster taints describe nodes."""
    yield from broken(_TABLES["names"], path, name=name, length=len(name))
    for key, value in pool.labels.items():
        yield from _key_and_value(key, value, (*path, "labels", key), "label")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        where = (*path, "taints", index)
        yield from _key_and_value(taint.key, taint.value, where, "taint", reserved=made)
        if (taint.key, taint.effect) in seen:
            yield Problem(
                where, f"taint {taint.key} with {taint.effect} is listed twice; GKE takes each once"
            )
        seen.add((taint.key, taint.effect))


def _key_and_value(
    key: str, value: str, path: SettingPath, what: str, *, reserved: bool = True
) -> Iterable[Problem]:
    prefix = key.rpartition("/")[0]
    owner = next(
        (own for own in _RESERVED if reserved and (prefix == own or prefix.endswith(f".{own}"))), ""
    )
    return broken(_TABLES["keys"], path, name=key, value=value, what=what, owner=owner)
