"""Resolution of settings to complete RayClusters, checked against the pools that they run on.

Defaults and an owner's settings are merged as plain data and validated once, with the pools
(components/ray/place.py). Rules judge the result once: of an environment, with those of all slices
(rules/), and of a RayCluster (components/ray/rules).
"""

from collections.abc import Iterable
from dataclasses import replace

from berth.components.core.manifest import value_at
from berth.components.core.owner import OwnerKind
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.words import first_names
from berth.components.isolation import IsolationSettings
from berth.components.ray import (
    AvailablePools,
    JobShape,
    RayClusterSettings,
    RayJobSettings,
    RayServiceSettings,
    RayShape,
    ServiceShape,
    capacity_problems,
    cluster_problems,
    cluster_warnings,
    demands_of,
    place_cluster,
    second_cluster_warnings,
    workload_warnings,
)
from berth.components.sharing import offered_pools
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import KEYS, EnvironmentSettings
from berth.stacks.settings.resolved import Resolved
from berth.stacks.settings.rules import environment_problems, environment_warnings
from berth.stacks.settings.rules.names import OWNER_NAMES
from berth.stacks.settings.rules.own_stack import OWN_BERTHS, OWN_CLUSTERS, OwnBerth, OwnCluster
from berth.stacks.settings.rules.plain_secrets import WRITTEN, Written
from berth.stacks.settings.rules.ray_clusters import (
    ENVIRONMENT_CLUSTERS,
    PLACED,
    EnvironmentClusters,
    PlacedTogether,
)

_OF_BERTHS = ("worker_groups", "lifecycle", "home")
_NOT_INHERITED: dict[OwnerKind, tuple[str, ...]] = {
    "engineer": (),
    "cluster": _OF_BERTHS,
    "job": (*_OF_BERTHS, "dashboard"),
    "service": (*_OF_BERTHS, "dashboard"),
}
"""Settings of `defaults` that a kind of owner does not take."""


def resolve_environment(
    settings: EnvironmentSettings, *, unknown_pools: frozenset[str] = frozenset()
) -> Resolved:
    """Return all RayClusters of an environment, and all problems across its settings.

    Args:
        settings: the environment.
        unknown_pools: names of pools that were taken out of the settings, since they are invalid.
    """
    pools = offered_pools(settings.pools, settings.sharing)
    unknown = unknown_pools | (settings.pools.keys() - pools.keys())
    available = AvailablePools(
        pools,
        unknown,
        on_existing_cluster=settings.cluster.existing is not None,
        isolation=settings.isolation,
    )
    resolved = Resolved(pools)
    resolved.problems += environment_problems(settings)
    resolved.warnings += environment_warnings(settings)
    resolved.warnings += WRITTEN.warnings(Written(settings), ("environment",))
    names: set[str] = set()
    for kind, name, shape in settings.owners():
        if name in names:
            continue  # a problem of the rules
        names.add(name)
        if isinstance(shape, JobShape) and shape.cluster:
            resolved.jobs += _jobs_on_shared_cluster(name, shape, resolved)
        else:
            _add_owner(resolved, settings, kind, name, shape, available)
    resolved.problems += capacity_problems(pools, resolved.demands, ("environment", "pools"))
    clusters = EnvironmentClusters(settings, resolved.every, pools)
    resolved.problems += ENVIRONMENT_CLUSTERS.problems(clusters, ("environment",))
    resolved.warnings += ENVIRONMENT_CLUSTERS.warnings(clusters, ("environment",))
    resolved.warnings += workload_warnings(
        resolved.jobs, resolved.services, internet=_has_internet(settings)
    )
    together = PlacedTogether(resolved.every, pools)
    resolved.warnings += PLACED.warnings(together, ("environment", "defaults"))
    resolved.problems = _once(resolved.problems, settings)
    resolved.warnings = _once(resolved.warnings, settings)
    return resolved


def _has_internet(settings: EnvironmentSettings) -> bool:
    """Return whether nodes have a way to the internet, as far as the settings say."""
    network = settings.network
    created = not settings.cluster.existing and not network.existing
    return network.nat or not created or not settings.cluster.private_nodes


def _jobs_on_shared_cluster(name: str, job: JobShape, resolved: Resolved) -> list[RayJobSettings]:
    """Return a RayJob on the RayCluster of another owner, which is resolved before it.

    The list is empty where there is no such RayCluster, which is a problem of the workloads' rules.
    """
    return [
        _job(name, job, cluster)
        for cluster in (*resolved.berths, *resolved.clusters)
        if cluster.name == job.cluster
    ]


def _add_owner(
    resolved: Resolved,
    settings: EnvironmentSettings,
    kind: OwnerKind,
    name: str,
    shape: RayShape,
    available: AvailablePools,
) -> None:
    """Add the RayCluster of an owner, and what is wrong with it."""
    path: SettingPath = ("environment", KEYS[kind], name)
    inherited = settings.defaults_here.written_values()
    for key in _NOT_INHERITED[kind]:
        inherited.pop(key, None)
    placed, problems = place_cluster(
        name, shape, inherited, available, path, for_whole_node=kind != "engineer"
    )
    resolved.problems += problems
    if placed is None:
        return
    cluster = placed.cluster
    demands = demands_of(cluster)
    resolved.problems += cluster_problems(placed)
    resolved.warnings += cluster_warnings(placed)
    if isinstance(shape, JobShape):
        # A job waits for room, and one that has ended takes none: its demands count alone.
        resolved.problems += capacity_problems(available.pools, demands, path)
        resolved.jobs.append(_job(name, shape, cluster))
        return
    resolved.demands += demands
    if isinstance(shape, ServiceShape):
        resolved.services.append(RayServiceSettings(name, shape, cluster))
        if shape.upgrade_strategy == "NewCluster":
            resolved.warnings += second_cluster_warnings(cluster, available.pools, path)
    elif kind == "cluster":
        resolved.clusters.append(cluster)
    else:
        resolved.berths.append(cluster)


def resolve_engineer(
    settings: EngineerSettings, stack: str, contract: EnvironmentContract
) -> Resolved:
    """Return the RayCluster of an engineer's stack, checked against its environment."""
    name = settings.name or stack
    path: SettingPath = ("engineer",)
    available = AvailablePools(
        offered_pools(contract.pools, contract.sharing),
        on_existing_cluster=contract.login is not None,
        isolation=contract.isolation or IsolationSettings(),
    )
    resolved = Resolved(available.pools)
    resolved.warnings += WRITTEN.warnings(Written(settings, name), path)
    resolved.problems += OWN_BERTHS.problems(OwnBerth(name, settings, contract), path)
    resolved.problems += OWNER_NAMES.problems(name, path)
    placed, problems = place_cluster(
        name, settings, contract.defaults.written_values(), available, path, for_whole_node=False
    )
    resolved.problems += problems
    if placed is None:
        return resolved
    resolved.berths.append(placed.cluster)
    resolved.demands += demands_of(placed.cluster)
    resolved.problems += cluster_problems(placed)
    own = OwnCluster(placed.cluster, settings, contract)
    resolved.problems += OWN_CLUSTERS.problems(own, path)
    resolved.warnings += cluster_warnings(placed)
    resolved.warnings += PLACED.warnings(PlacedTogether([placed.cluster], available.pools), path)
    resolved.problems += capacity_problems(
        available.pools, [*contract.demands, *resolved.demands], path
    )
    return resolved


def _once(problems: Iterable[Problem], settings: EnvironmentSettings) -> list[Problem]:
    """Return problems, where those of a setting in `defaults` are one there, for all engineers.

    Else a typo in `defaults` would be a line for each engineer, and at the engineer's place.
    """
    engineers_of: dict[Problem, list[str]] = {}
    for problem in problems:
        match problem.path:
            case ("environment", "engineers", str(name), *setting) if _inherits(
                settings, name, setting
            ):
                moved = replace(problem, path=("environment", "defaults", *setting))
                engineers_of.setdefault(moved, []).append(name)
            case _:
                engineers_of.setdefault(problem, [])
    named: list[Problem] = []
    for problem, names in engineers_of.items():
        if names:
            named.append(replace(problem, message=f"{problem.message} (for {first_names(names)})"))
        else:
            named.append(problem)
    return named


def _inherits(settings: EnvironmentSettings, engineer: str, setting: list[str | int]) -> bool:
    """Return whether an engineer's berth takes a setting from `defaults`."""
    own = _written_value(settings.engineers[engineer], setting)
    return bool(setting) and own is None and _written_value(settings.defaults, setting) is not None


def _written_value(shape: RayShape, setting: list[str | int]) -> object:
    """Return the value that settings have as written; None where they leave it out."""
    return value_at(
        shape.model_dump(by_alias=True, exclude_unset=True, exclude_none=True), *setting
    )


def _job(name: str, shape: JobShape, cluster: RayClusterSettings) -> RayJobSettings:
    """Return a RayJob on its RayCluster, which it waits for as that waits."""
    goal = {
        "until": "submitted" if cluster.wait.until == "submitted" else "running",
        "timeout": cluster.wait.timeout,
    }
    wait = type(shape.wait).model_validate(goal | shape.wait.written_values())
    return RayJobSettings(name, shape, cluster, own_cluster=shape.cluster is None, wait=wait)
