"""Resolution of settings to complete RayClusters, checked against the pools that they run on.

Defaults and an owner's settings are merged as plain data and validated once, with the pools
(components/ray/place.py). Rules judge the result once: of the slices (rules.py), and of a
RayCluster (components/ray/rules.py).
"""

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from berth.components.core.manifest import at
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import broken
from berth.components.core.words import few
from berth.components.fabric import pinned_by_default
from berth.components.ray import (
    JobShape,
    RayClusterSettings,
    RayJobSettings,
    RayServiceSettings,
    ServiceShape,
)
from berth.components.ray.fit import capacity_problems, demands_of, second_cluster_warnings
from berth.components.ray.place import Ground, place
from berth.components.ray.rules import cluster_problems, cluster_warnings, may_be_evicted
from berth.components.sharing import offered
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import KEYS, USES, EnvironmentSettings
from berth.stacks.settings.resolved import Resolved
from berth.stacks.settings.rules import CONTRADICTIONS, RULES, WARNINGS

_OF_BERTHS = ("worker_groups", "lifecycle", "home")
_NOT_INHERITED: dict[OwnerKind, tuple[str, ...]] = {
    "engineer": (),
    "cluster": _OF_BERTHS,
    "job": (*_OF_BERTHS, "dashboard"),
    "service": (*_OF_BERTHS, "dashboard"),
}
"""Settings of `defaults` that a kind of owner does not take."""

_SHOWN = 5
"""Engineers that a problem of a setting in `defaults` names."""


def resolve_environment(
    settings: EnvironmentSettings, *, unknown_pools: frozenset[str] = frozenset()
) -> Resolved:
    """Return all RayClusters of an environment, and all problems across its settings."""
    pools = offered(settings.pools, settings.sharing)
    unknown = unknown_pools | (settings.pools.keys() - pools.keys())
    ground = Ground(pools, unknown, existing=settings.cluster.existing is not None)
    resolved = Resolved(pools)
    resolved.problems += [problem for rule in RULES for problem in rule(settings)]
    resolved.warnings += [warning for rule in WARNINGS for warning in rule(settings)]
    defaults, names = settings.defaults_here.written(), set[str]()
    for kind, name, shape in settings.owners():
        if name in names:
            continue  # a problem of the rules
        names.add(name)
        path: SettingPath = ("environment", KEYS[kind], name)
        if isinstance(shape, JobShape) and shape.cluster:
            # A cluster that does not exist is a problem of the workloads' rules.
            known = (*resolved.berths, *resolved.clusters)
            resolved.jobs += [
                _job(name, shape, cluster) for cluster in known if cluster.name == shape.cluster
            ]
            continue
        inherited = {
            key: value for key, value in defaults.items() if key not in _NOT_INHERITED[kind]
        }
        placed, problems = place(
            name, shape, inherited, ground, path, for_whole_node=kind != "engineer"
        )
        resolved.problems += problems
        if placed is None:
            continue
        cluster, demands = placed.cluster, demands_of(placed.cluster)
        resolved.problems += cluster_problems(placed)
        resolved.warnings += cluster_warnings(placed)
        if isinstance(shape, JobShape):
            # A job waits for room, and one that has ended takes none: its demands count alone.
            resolved.problems += capacity_problems(pools, demands, path)
            resolved.jobs.append(_job(name, shape, cluster))
            continue
        resolved.demands += demands
        if isinstance(shape, ServiceShape):
            resolved.services.append(RayServiceSettings(name, shape, cluster))
            if shape.upgrade_strategy == "NewCluster":
                resolved.warnings += second_cluster_warnings(cluster, pools, path)
        else:
            (resolved.clusters if kind == "cluster" else resolved.berths).append(cluster)
    resolved.problems += capacity_problems(pools, resolved.demands, ("environment", "pools"))
    pods = sum(cluster.workers_at_most + 1 for cluster in resolved.every)
    resolved.warnings += broken(
        CONTRADICTIONS["operator"],
        ("environment", "operators", "kuberay", "values"),
        kuberay=settings.operators.kuberay,
        sized="resources" in (settings.operators.kuberay.values or {}),
        pods=pods,
        memory=f"{max(1, pods // 500)}Gi",
    )
    users = {
        addon: [cluster.name for cluster in resolved.every if uses(cluster)]
        for addon, uses in USES.items()
    }
    resolved.problems += broken(
        CONTRADICTIONS["drivers"], ("environment",), cluster=settings.cluster, **users
    )
    pinned = [
        cluster.name
        for cluster in resolved.every
        if pinned_by_default(cluster.nccl, cluster.groups)
    ]
    resolved.warnings += broken(CONTRADICTIONS["pinned"], ("environment",), clusters=pinned)
    evicted = [cluster.name for cluster in resolved.every if may_be_evicted(cluster, pools)]
    resolved.warnings += broken(
        CONTRADICTIONS["evicted"], ("environment", "defaults"), clusters=evicted
    )
    resolved.problems = _once(resolved.problems, settings)
    resolved.warnings = _once(resolved.warnings, settings)
    return resolved


def resolve_engineer(
    settings: EngineerSettings, stack: str, contract: EnvironmentContract
) -> Resolved:
    """Return the RayCluster of an engineer's stack, checked against its environment."""
    name, path = settings.name or stack, ("engineer",)
    ground = Ground(offered(contract.pools, contract.sharing), existing=contract.login is not None)
    resolved = Resolved(ground.pools)
    facts: dict[str, Any] = {"settings": settings, "contract": contract}
    owner = contract.namespaces.get(namespace_of(name))
    resolved.problems += broken(
        CONTRADICTIONS["of_environment"], path, name=name, owner=owner, **facts
    )
    resolved.problems += broken(CONTRADICTIONS["reserved"], path, name=name)
    placed, problems = place(
        name, settings, contract.defaults.written(), ground, path, for_whole_node=False
    )
    resolved.problems += problems
    if placed is None:
        return resolved
    resolved.berths.append(placed.cluster)
    resolved.demands += demands_of(placed.cluster)
    resolved.problems += cluster_problems(placed)
    used = SimpleNamespace(**{addon: uses(placed.cluster) for addon, uses in USES.items()})
    resolved.problems += broken(
        CONTRADICTIONS["on_environment"], path, cluster=placed.cluster, uses=used, **facts
    )
    resolved.warnings += cluster_warnings(placed)
    evicted = [name] if may_be_evicted(placed.cluster, ground.pools) else []
    resolved.warnings += broken(CONTRADICTIONS["evicted"], path, clusters=evicted)
    resolved.problems += capacity_problems(
        ground.pools, [*contract.demands, *resolved.demands], path
    )
    return resolved


def _once(problems: Iterable[Problem], settings: EnvironmentSettings) -> list[Problem]:
    """Return problems, where those of a setting in `defaults` are one there, for all engineers.

    Else a typo in `defaults` would be a line for each engineer, and at the engineer's place.
    """
    found: dict[Problem, list[str]] = {}
    for problem in problems:
        match problem.path:
            case ("environment", "engineers", str(name), *setting) if _takes(
                settings, name, setting
            ):
                moved = replace(problem, path=("environment", "defaults", *setting))
                found.setdefault(moved, []).append(name)
            case _:
                found.setdefault(problem, [])
    return [
        replace(problem, message=f"{problem.message} (for {few(names, _SHOWN)})")
        if names
        else problem
        for problem, names in found.items()
    ]


def _takes(settings: EnvironmentSettings, engineer: str, setting: list[str | int]) -> bool:
    """Return whether an engineer's berth takes a setting from `defaults`."""
    own, defaults = (
        at(shape.model_dump(by_alias=True, exclude_unset=True, exclude_none=True), *setting)
        for shape in (settings.engineers[engineer], settings.defaults)
    )
    return bool(setting) and own is None and defaults is not None


def _job(name: str, shape: JobShape, cluster: RayClusterSettings) -> RayJobSettings:
    """Return a RayJob on its RayCluster, which it waits for as that waits."""
    goal = {
        "until": "submitted" if cluster.wait.until == "submitted" else "running",
        "timeout": cluster.wait.timeout,
    }
    wait = type(shape.wait).model_validate(goal | shape.wait.written())
    return RayJobSettings(name, shape, cluster, own_cluster=shape.cluster is None, wait=wait)
