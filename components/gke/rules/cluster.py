"""Rules of the cluster: version, control plane, existing cluster, labels."""

import ipaddress
from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.core.settings import written
from berth.components.core.table import beside, broken
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import too_old

_TOP: Path = ("environment",)
_CLUSTER: Path = (*_TOP, "cluster")
_EVERYWHERE = "0.0.0.0/0"


def problems(settings: GkeSettings) -> Iterable[Problem]:
    """Return what a cluster cannot have."""
    yield from _existing(settings)
    yield from _labels(settings)
    if settings.cluster.existing:
        return
    if settings.cluster.version and (text := too_old(settings, settings.cluster.version)):
        yield Problem((*_CLUSTER, "version"), text)
    yield from _networks("authorized_networks", settings)


def warnings(settings: GkeSettings) -> Iterable[Problem]:
    """Return settings that work, but likely not as intended."""
    return _networks("warnings_of_networks", settings)


def _networks(table: str, settings: GkeSettings) -> Iterable[Problem]:
    for name, network in settings.cluster.authorized_networks.items():
        # Python calls the whole internet private, since both its first and its last address are.
        public = network == _EVERYWHERE or not ipaddress.IPv4Network(network).is_private
        facts = {"cluster": settings.cluster, "network": network, "public": public}
        yield from broken(beside(__file__)[table], (*_CLUSTER, "authorizedNetworks", name), **facts)


_ONLY_WHEN_MADE = ("project", "zone", "region", "zones")
_POOL_WHEN_MADE = (
    *("zones", "capacity", "compactPlacement", "sysctls", "driverVersion", "diskSizeGb", "diskType", "localSsds"),
    *("maxPodsPerNode", "upgrade", "autoRepair", "secureBoot", "imageStreaming", "imageDisks"),
)


def _existing(settings: GkeSettings) -> Iterable[Problem]:
    if not settings.cluster.existing:
        return
    because = "cluster.existing uses a cluster that is there, and berth makes neither network nor nodes"
    written_of_cluster = [key for key in written(settings.cluster) if key != "existing"]
    for path, keys in (
        (_TOP, [key for key in written(settings) if key in _ONLY_WHEN_MADE]),
        (_CLUSTER, written_of_cluster),
        ((*_TOP, "network"), written(settings.network)),
        *(
            ((*_TOP, "pools", name), [key for key in written(pool) if key in _POOL_WHEN_MADE])
            for name, pool in settings.pools.items()
        ),
    ):
        for key in keys:
            yield Problem((*path, key), f"would be ignored: {because}; take it out")


def _labels(settings: GkeSettings) -> Iterable[Problem]:
    for key, value in settings.labels.items():
        yield from broken(beside(__file__)["labels"], (*_TOP, "labels", key), name=key, value=value)
