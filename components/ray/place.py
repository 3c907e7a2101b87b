"""Place of a RayCluster on an environment's pools: from settings as written to complete ones."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.types import parse_quantity
from berth.components.fabric import resource_problems
from berth.components.hardware.allocatable import GIB
from berth.components.isolation import DEVELOPMENT, PRODUCTION
from berth.components.ray.layers import Layer, groups_of, over_defaults, within
from berth.components.ray.placed import AvailablePools, PlacedCluster
from berth.components.ray.rules.pod_templates import pod_template_problems, without_patches
from berth.components.ray.rules.written import shape_problems
from berth.components.ray.settings import RayClusterSettings, RayShape, WorkerShape
from berth.components.sharing import Pool, Pools

_SIZE = ("gpus", "nics", "cpu", "cpu_limit", "memory", "ray_gpus", "ray_resources")
"""Settings of a worker's size, of which a worker on a whole node has none from `defaults`."""

# Share of a node that a worker on a whole node requests; the rest is for GKE's reservation and
# daemons. The A4 recipe of the DraNet documentation requests 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")


def place(
    name: str,
    written: RayShape,
    defaults: Layer,
    available: AvailablePools,
    path: SettingPath,
    *,
    for_whole_node: bool,
) -> tuple[PlacedCluster | None, list[Problem]]:
    """Return a complete RayCluster, or None where its pools are unknown, with problems.

    `for_whole_node`: its workers take whole nodes by default, and its pods go first.
    """
    problems = list(shape_problems(written, path))
    own = written.of_cluster()
    given = over_defaults(defaults, own)
    groups = groups_of(given)
    places = {group: (*path, *within(given, group)) for group in groups}
    found = {
        group: _pool(
            worker.get("pool"), "worker", places[group], available, gpus=worker.get("gpus") != 0
        )
        for group, worker in groups.items()
    }
    of_head = given.get("head", {})
    head = _pool(
        of_head.get("pool"), "head", (*path, "head"), available, gpus=bool(of_head.get("gpus"))
    )
    pools = {group: pool for group, pool in found.items() if isinstance(pool, Pool)}
    if len(pools) < len(groups) or not isinstance(head, Pool):
        return None, [
            *problems,
            *(wrong for wrong in (*found.values(), head) if isinstance(wrong, Problem)),
        ]
    if for_whole_node:
        sizes = groups_of(own)
        if shared := next(
            (group for group, pool in pools.items() if pool.shared and "gpus" not in sizes[group]),
            None,
        ):
            return None, [
                *problems,
                Problem(
                    (*places[shared], "pool"),
                    f"a cluster's worker takes a whole node, but pool {pools[shared].name!r} shares"
                    " its GPUs; name a pool that doesn't, or say how many shares a worker takes"
                    " (worker.gpus)",
                ),
            ]
        groups = {
            group: _whole(worker, sizes[group], pools[group]) for group, worker in groups.items()
        }
    else:
        groups = {
            group: {**_small_node(pools[group]), **worker} for group, worker in groups.items()
        }
    problems += [
        problem
        for group, worker in groups.items()
        for problem in resource_problems(worker.get("gpu_resource"), pools[group], places[group])
    ]
    cluster = complete(
        name, given, pools, head, PRODUCTION if for_whole_node else DEVELOPMENT, groups
    )
    placed = PlacedCluster(cluster, written, path, available)
    of_patches = list(pod_template_problems(placed))
    if of_patches:
        placed = replace(placed, cluster=without_patches(cluster))
    return placed, [*problems, *of_patches]


def _whole(worker: Mapping[str, object], own: Layer, pool: Pool) -> Layer:
    """Return a worker on a whole node: of sizes it has only its own."""
    return {
        **_whole_node(pool),
        **{key: value for key, value in worker.items() if key not in _SIZE},
        **{key: own[key] for key in _SIZE if key in own},
    }


def _pool(
    given: str | None, role: str, path: SettingPath, available: AvailablePools, *, gpus: bool
) -> Pool | Problem | None:
    """Return a pool by its name, or the only one that fits; None if broken ones may decide it."""
    where: SettingPath = (*path, "pool")
    pools, known = available.pools, {*available.pools, *available.unknown}
    if given is not None and given not in known:
        return Problem(where, f"there is no pool {given!r}{did_you_mean(given, known)}")
    if given is not None or available.unknown:
        return pools.get(given or "")
    fitting = sorted(name for name, pool in pools.items() if bool(pool.per_node) == gpus)
    if len(fitting) == 1:
        return pools[fitting[0]]
    kind = "with GPUs" if gpus else "without GPUs"
    several = f"several pools are {kind}: {', '.join(fitting)}"
    none = f"no pool is {kind}; pools are {', '.join(sorted(pools))}"
    return Problem(
        where, f"is required, since {several if fitting else none} (or set defaults.{role}.pool)"
    )


def _whole_node(pool: Pool) -> dict[str, Any]:
    """Return the size of a worker that takes a whole node of a pool, as far as berth knows it."""
    machine, offered = pool.settings.machine, pool.settings.for_pods
    if offered is None:
        return {"gpus": pool.per_node}
    cores, memory = Decimal(machine.vcpus), Decimal(machine.memory_gib)
    if not machine.known:
        cores, memory = Decimal(offered.cpu_millis) / 1000, Decimal(offered.memory) / GIB
    return {
        "gpus": pool.per_node,
        "cpu": str(max(1, int(cores * _WHOLE_NODE_CPU))),
        "memory": f"{max(1, int(memory * _WHOLE_NODE_MEMORY))}Gi",
    }


def _small_node(pool: Pool) -> dict[str, Any]:
    """Return sizes of a worker in place of defaults that a small node has no room for."""
    offered = pool.settings.for_pods
    if offered is None:
        return {}
    room = {"cpu": Decimal(offered.cpu_millis) / 1000, "memory": Decimal(offered.memory)}
    defaults = {name: parse_quantity(WorkerShape.model_fields[name].default) for name in room}
    return {
        name: size
        for name, size in _whole_node(pool).items()
        if name in room and defaults[name] > room[name]
    }


def complete(
    name: str,
    shape: RayShape | Mapping[str, Any],
    workers: Pool | Pools,
    head: Pool,
    priority: str,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
) -> RayClusterSettings:
    """Return the complete settings of a RayCluster.

    `shape` is over all defaults; `workers` are a pool, or pools by the group's name. By default,
    `groups` are those of the shape.
    """
    given = shape.written_values() if isinstance(shape, RayShape) else shape
    groups = groups_of(given) if groups is None else groups
    pools = dict.fromkeys(groups, workers) if isinstance(workers, Pool) else workers
    return RayClusterSettings.model_validate(
        {
            "priority": priority,
            **given,
            "name": name,
            "groups": [
                {
                    **group,
                    "name": key,
                    "pool": pools[key].name,
                    "nccl": given.get("nccl"),
                    "within": within(given, key),
                }
                for key, group in groups.items()
            ],
            "head": {**given.get("head", {}), "pool": head.name},
        },
        context={pool.name: pool for pool in pools.values()},
    )
