"""Rules of the cluster and of the environment as a whole; what an existing cluster excludes."""

import ipaddress
from collections.abc import Iterable

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.settings import written_keys
from berth.components.core.table import beside, broken
from berth.components.core.types import location_of_key
from berth.components.gke.cluster_settings import Maintenance
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import too_old

_TABLES = beside(__file__)
_TOP: SettingPath = ("environment",)
_CLUSTER: SettingPath = (*_TOP, "cluster")
_EVERYWHERE = "0.0.0.0/0"


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Yield what a cluster cannot have, and settings that contradict one another."""
    facts = _facts(settings)
    yield from broken(_TABLES["every_environment"], _TOP, **facts)
    for key, value in settings.labels.items():
        yield from broken(_TABLES["labels"], (*_TOP, "labels", key), name=key, value=value)
    if settings.cluster.existing:
        yield from _ignored(settings)
        return
    yield from broken(_TABLES["environment"], _TOP, **facts)
    for name, exclusion in (settings.cluster.maintenance or Maintenance()).exclusions.items():
        at = (*_CLUSTER, "maintenance", "exclusions", name)
        yield from broken(_TABLES["exclusions"], at, exclusion=exclusion)
    if settings.cluster.version and (text := too_old(settings, settings.cluster.version)):
        yield Problem((*_CLUSTER, "version"), text)
    yield from _networks("authorized_networks", settings)


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Return settings that work, but likely not as intended."""
    return _networks("warnings_of_networks", settings)


def _facts(settings: GkeSettings) -> dict[str, object]:
    pools, network, on_rdma = settings.pools, settings.network, settings.pools_with_rdma("networks")
    return {
        "settings": settings,
        "on_rdma": on_rdma,
        "on_managed": settings.pools_with_rdma("managed"),
        "labels": len(settings.labels),
        "tainted": _tainted(settings),
        "rated": [name for name, pool in pools.items() if pool.hourly_rate],
        "without_zones": sorted(name for name, pool in pools.items() if not pool.zones),
        "key_in": location_of_key(settings.cluster.secrets_encryption_key or ""),
        "beside_existing": [key for key in written_keys(network) if key != "existing"],
        "lacking": [
            key for key in ("gvnic", "rdma") if getattr(network.existing, key, None) is None
        ],
        "needed_by": f"pool {on_rdma[0]!r}"
        if len(on_rdma) == 1
        else f"each of the pools {', '.join(on_rdma)}",
    }


def _tainted(settings: GkeSettings) -> list[str]:
    """Return the pools that should have room for other pods, if taints keep those off them all."""
    plain = {
        name: pool for name, pool in settings.pools.items() if not pool.machine.gpus
    } or settings.pools
    tainted = [
        name
        for name, pool in plain.items()
        if any(taint.effect != "PreferNoSchedule" for taint in pool.taints)
    ]
    return tainted if len(tainted) == len(plain) else []


def _networks(table: str, settings: GkeSettings) -> Iterable[Problem]:
    for name, network in settings.cluster.authorized_networks.items():
        # Python calls the whole internet private, since both its first and its last address are.
        public = network == _EVERYWHERE or not ipaddress.IPv4Network(network).is_private
        facts = {"cluster": settings.cluster, "network": network, "public": public}
        yield from broken(_TABLES[table], (*_CLUSTER, "authorizedNetworks", name), **facts)


def _ignored(settings: GkeSettings) -> Iterable[Problem]:
    """Yield settings of what berth does not make on an existing cluster."""
    for of, path, part in (
        ("environment", _TOP, settings),
        ("cluster", _CLUSTER, settings.cluster),
        ("network", (*_TOP, "network"), settings.network),
        *(("pool", (*_TOP, "pools", name), pool) for name, pool in settings.pools.items()),
    ):
        for name in written_keys(part):
            yield from broken(_TABLES["ignored_on_existing"], (*path, name), of=of, name=name)
