"""Rules across the settings of a GKE cluster, its networks and its node pools.

Each module has the rules of one subject. An existing cluster is only described, so that most rules
are for clusters that berth creates.
"""

from collections.abc import Callable, Iterable, Iterator

from berth.components.core.problems import Problem
from berth.components.gke.rules.arguments import CLUSTER_ARGUMENTS, POOL_ARGUMENTS
from berth.components.gke.rules.capacity import CREATED_CAPACITY
from berth.components.gke.rules.cluster import CLUSTERS, CREATED_CLUSTERS
from berth.components.gke.rules.disks import CREATED_BOOT_DISKS, CREATED_DISKS
from berth.components.gke.rules.environment import CREATED_ENVIRONMENTS, ENVIRONMENTS
from berth.components.gke.rules.existing_cluster import EXISTING_CLUSTERS
from berth.components.gke.rules.machine_types import MACHINE_TYPES
from berth.components.gke.rules.maintenance import CREATED_MAINTENANCE
from berth.components.gke.rules.network import CREATED_CLUSTER_NETWORKS
from berth.components.gke.rules.node_keys import NODE_KEYS
from berth.components.gke.rules.pool import EnvironmentPool, environment_pools
from berth.components.gke.rules.pools import CREATED_POOLS
from berth.components.gke.rules.pools_together import ALL_POOLS, CREATED_POOLS_TOGETHER
from berth.components.gke.rules.ranges import CREATED_RANGES, CreatedRanges
from berth.components.gke.rules.zones import CREATED_POOL_ZONES, CREATED_ZONES
from berth.components.gke.settings import GkeSettings

_ENVIRONMENT = ("environment",)
_POOLS = (*_ENVIRONMENT, "pools")


def problems(environment: GkeSettings) -> Iterator[Problem]:
    """Yield what GKE and Google Cloud would refuse."""
    yield from ENVIRONMENTS.problems(environment, _ENVIRONMENT)
    yield from ALL_POOLS.problems(environment, _ENVIRONMENT)
    for pool in environment_pools(environment):
        path = (*_POOLS, pool.name)
        yield from MACHINE_TYPES.problems(pool.settings, path)
        yield from NODE_KEYS.problems(pool, path)
    if environment.cluster.existing:
        yield from EXISTING_CLUSTERS.problems(environment, _ENVIRONMENT)
    else:
        yield from _problems_of_a_created_cluster(environment)


def warnings(environment: GkeSettings) -> Iterator[Problem]:
    """Yield settings that work, but likely not as intended."""
    yield from CLUSTERS.warnings(environment, _ENVIRONMENT)
    if environment.cluster.existing:
        return
    yield from CREATED_MAINTENANCE.warnings(environment, _ENVIRONMENT)
    for pool in environment_pools(environment):
        path = (*_POOLS, pool.name)
        yield from CREATED_CAPACITY.warnings(pool, path)
        yield from CREATED_POOLS.warnings(pool, path)
        yield from CREATED_BOOT_DISKS.warnings(pool, path)


def _problems_of_a_created_cluster(environment: GkeSettings) -> Iterator[Problem]:
    for rules in (
        CREATED_ENVIRONMENTS,
        CREATED_ZONES,
        CREATED_CLUSTERS,
        CREATED_MAINTENANCE,
        CLUSTER_ARGUMENTS,
        CREATED_CLUSTER_NETWORKS,
        CREATED_POOLS_TOGETHER,
    ):
        yield from rules.problems(environment, _ENVIRONMENT)
    for pool in environment_pools(environment):
        yield from _problems_of_a_created_pool(pool)
    if not environment.network.existing:
        yield from CREATED_RANGES.problems(CreatedRanges(environment), _ENVIRONMENT)


def _problems_of_a_created_pool(pool: EnvironmentPool) -> Iterator[Problem]:
    path = (*_POOLS, pool.name)
    for rules in (
        CREATED_CAPACITY,
        CREATED_POOLS,
        CREATED_BOOT_DISKS,
        POOL_ARGUMENTS,
        CREATED_POOL_ZONES,
    ):
        yield from rules.problems(pool, path)
    yield from CREATED_DISKS.problems(pool.settings, path)


RULES: tuple[Callable[[GkeSettings], Iterable[Problem]], ...] = (problems,)
"""Rules of what GKE and Google Cloud would refuse."""

WARNINGS: tuple[Callable[[GkeSettings], Iterable[Problem]], ...] = (warnings,)
"""Rules of settings that work, but likely not as intended."""
