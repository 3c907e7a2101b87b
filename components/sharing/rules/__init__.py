"""Rules of GPU pools: their driver, who advertises their GPUs, sharing, and the autoscaler."""

from collections.abc import Iterable

from berth.components.core.problems import Problem
from berth.components.sharing.rules.autoscaler import ALL_POOLS, SCALED_POOLS, scaled_pools
from berth.components.sharing.rules.labels import SERVED_POOLS, served_pools
from berth.components.sharing.rules.pool_gpus import POOL_GPUS, PoolGpus
from berth.components.sharing.rules.profiles import PROFILES
from berth.components.sharing.settings import SharingSettings

_ENVIRONMENT = ("environment",)
_POOLS = (*_ENVIRONMENT, "pools")


def problems(settings: SharingSettings) -> Iterable[Problem]:
    """Yield what is wrong with the GPUs of each pool, and of pools together."""
    for served in served_pools(settings):
        yield from SERVED_POOLS.problems(served, (*_POOLS, served.pool.name))
    yield from PROFILES.problems(settings, _ENVIRONMENT)
    for name, pool in settings.pools.items():
        yield from POOL_GPUS.problems(PoolGpus(pool, settings), (*_POOLS, name))
    if not settings.cluster.existing:
        yield from _never_scaled(settings)


def warnings(settings: SharingSettings) -> Iterable[Problem]:
    """Yield labels that nodes of an existing cluster need, and pools that do not always scale."""
    for served in served_pools(settings):
        yield from SERVED_POOLS.warnings(served, (*_POOLS, served.pool.name))
    if settings.cluster.existing:
        # An existing node pool may have a node already, so that these problems are warnings.
        yield from _never_scaled(settings)
    for name, pool in scaled_pools(settings).items():
        yield from SCALED_POOLS.warnings(pool, (*_POOLS, name))
    yield from ALL_POOLS.warnings(settings, _ENVIRONMENT)


def _never_scaled(settings: SharingSettings) -> Iterable[Problem]:
    for name, pool in scaled_pools(settings).items():
        yield from SCALED_POOLS.problems(pool, (*_POOLS, name))
