"""Place of a RayCluster on an environment's pools: from settings as written to complete ones.

The settings go through these steps:

1. Settings of `defaults` and of the RayCluster are merged as plain data (layers.py): what is left
   out in one layer may be written in another.
2. The head and each group of workers get a pool (pool_choice.py).
3. Workers get sizes from the nodes of their pool (node_sizes.py).
4. The pools complete the settings, which are validated (completion.py).
5. Patches of pod templates are held to the pods that the complete settings make.

Rules (rules/) judge the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from berth.components.core.problems import Problem, SettingPath
from berth.components.fabric import gpu_name_problems
from berth.components.isolation import DEVELOPMENT, PRODUCTION
from berth.components.ray.completion import GroupOnPool, completed_settings
from berth.components.ray.layers import GroupLayer, Layer, group_layers, settings_over_defaults
from berth.components.ray.node_sizes import small_node_size, whole_node_size
from berth.components.ray.placed import AvailablePools, PlacedCluster
from berth.components.ray.pool_choice import chosen_pool
from berth.components.ray.rules.pod_templates import pod_template_problems, without_patches
from berth.components.ray.rules.written import shape_problems
from berth.components.ray.settings import RayShape
from berth.components.sharing import Pool

_SIZES = ("gpus", "nics", "cpu", "cpu_limit", "memory", "ray_gpus", "ray_resources")
"""Settings of a worker's size, of which a worker on a whole node has none from `defaults`."""


@dataclass(frozen=True)
class _ChosenPools:
    """Pools of a RayCluster's pods."""

    head: Pool
    groups: list[GroupOnPool]


def place_cluster(
    name: str,
    written: RayShape,
    defaults: Layer,
    available: AvailablePools,
    path: SettingPath,
    *,
    for_whole_node: bool,
) -> tuple[PlacedCluster | None, list[Problem]]:
    """Return a complete RayCluster, or None where its pools are unknown, with problems.

    Args:
        name: name of the RayCluster.
        written: settings as written, without those of `defaults`.
        defaults: settings of `defaults` that the owner takes.
        available: pools of the environment.
        path: path of the settings as written.
        for_whole_node: whether workers take whole nodes by default, and pods go first.
    """
    problems = list(shape_problems(written, path))
    own = written.of_cluster()
    settings = settings_over_defaults(defaults, own)
    pools, problems_of_pools = _choose_pools(settings, available, path)
    problems += problems_of_pools
    if pools is None:
        return None, problems
    if for_whole_node:
        shared = _shared_nodes(pools.groups, own, path)
        if shared:
            return None, [*problems, shared]
        groups = [_on_whole_node(group, _own_values(own, group)) for group in pools.groups]
    else:
        groups = [_on_small_node(group) for group in pools.groups]
    for group in groups:
        gpu_resource = group.layer.values.get("gpu_resource")
        problems += gpu_name_problems(gpu_resource, group.pool, (*path, *group.layer.path))
    priority = PRODUCTION if for_whole_node else DEVELOPMENT
    cluster = completed_settings(name, settings, groups, pools.head, priority)
    placed = PlacedCluster(cluster, written, path, available)
    problems_of_patches = list(pod_template_problems(placed))
    if problems_of_patches:
        placed = replace(placed, cluster=without_patches(cluster))
    return placed, [*problems, *problems_of_patches]


def _choose_pools(
    settings: Layer, available: AvailablePools, path: SettingPath
) -> tuple[_ChosenPools | None, list[Problem]]:
    """Return the pools of head and groups; None if one has no pool, with the problems."""
    problems: list[Problem] = []
    groups: list[GroupOnPool] = []
    layers = group_layers(settings)
    for layer in layers:
        worker = layer.values
        asks_for_gpus = worker.get("gpus") != 0
        pool = chosen_pool(
            worker.get("pool"), "worker", (*path, *layer.path), available, gpus=asks_for_gpus
        )
        if isinstance(pool, Pool):
            groups.append(GroupOnPool(layer, pool))
        elif pool is not None:
            problems.append(pool)
    of_head = settings.get("head", {})
    head = chosen_pool(
        of_head.get("pool"), "head", (*path, "head"), available, gpus=bool(of_head.get("gpus"))
    )
    if isinstance(head, Problem):
        problems.append(head)
    if len(groups) < len(layers) or not isinstance(head, Pool):
        return None, problems
    return _ChosenPools(head, groups), problems


def _shared_nodes(groups: Sequence[GroupOnPool], own: Layer, path: SettingPath) -> Problem | None:
    """Return a problem if a worker is to take a whole node of a pool that shares its GPUs."""
    for group in groups:
        if group.pool.shared and "gpus" not in _own_values(own, group):
            return Problem(
                (*path, *group.layer.path, "pool"),
                f"a cluster's worker takes a whole node, but pool {group.pool.name!r} shares its"
                " GPUs; name a pool that doesn't, or say how many shares a worker takes"
                " (worker.gpus)",
            )
    return None


def _own_values(own: Layer, group: GroupOnPool) -> Layer:
    """Return the settings of a group that the RayCluster has itself, without `defaults`."""
    for layer in group_layers(own):
        if layer.name == group.layer.name:
            return layer.values
    return {}


def _on_whole_node(group: GroupOnPool, own: Layer) -> GroupOnPool:
    """Return a group whose workers take whole nodes: of sizes they have only their own."""
    values = whole_node_size(group.pool)
    for key, value in group.layer.values.items():
        if key not in _SIZES:
            values[key] = value
        elif key in own:
            values[key] = own[key]
    return _with_values(group, values)


def _on_small_node(group: GroupOnPool) -> GroupOnPool:
    """Return a group whose workers have less than the default where a node has no room for it."""
    return _with_values(group, {**small_node_size(group.pool), **group.layer.values})


def _with_values(group: GroupOnPool, values: dict[str, Any]) -> GroupOnPool:
    layer = GroupLayer(group.layer.name, group.layer.path, values)
    return GroupOnPool(layer, group.pool)
