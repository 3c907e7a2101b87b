"""Complete settings of a RayCluster: what is left out follows from its pools."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from berth.components.core.types import parse_quantity
from berth.components.hardware.allocatable import GIB
from berth.components.ray.layers import groups_of, within
from berth.components.ray.settings import RayClusterSettings, RayShape, WorkerShape
from berth.components.sharing import Pool, Pools

# Share of a node that a worker on a whole node requests; the rest is for GKE's reservation and
# daemons. The A4 recipe of the DraNet documentation requests 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")


def whole_node(pool: Pool) -> dict[str, Any]:
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


def small_node(pool: Pool) -> dict[str, Any]:
    """Return sizes of a worker in place of defaults that a small node has no room for."""
    offered = pool.settings.for_pods
    if offered is None:
        return {}
    room = {"cpu": Decimal(offered.cpu_millis) / 1000, "memory": Decimal(offered.memory)}
    defaults = {name: parse_quantity(WorkerShape.model_fields[name].default) for name in room}
    return {name: size for name, size in whole_node(pool).items() if name in room and defaults[name] > room[name]}


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
    given = shape.written() if isinstance(shape, RayShape) else shape
    groups = groups_of(given) if groups is None else groups
    pools = dict.fromkeys(groups, workers) if isinstance(workers, Pool) else workers
    return RayClusterSettings.model_validate(
        {
            "priority": priority,
            **given,
            "name": name,
            "groups": [
                {**group, "name": key, "pool": pools[key].name, "nccl": given.get("nccl"), "within": within(given, key)}
                for key, group in groups.items()
            ],
            "head": {**given.get("head", {}), "pool": head.name},
        },
        context={pool.name: pool for pool in pools.values()},
    )
