"""Sizes of workers by the nodes of their pool: of a whole node, and of one that is small."""

from decimal import Decimal
from typing import Any

from berth.components.core.types import parse_quantity
from berth.components.hardware.allocatable import GIB
from berth.components.ray.settings import WorkerShape
from berth.components.sharing import Pool

# Share of a node that a worker on a whole node requests; the rest is for GKE's reservation and
# daemons. The A4 recipe of the DraNet documentation requests 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")


def whole_node_size(pool: Pool) -> dict[str, Any]:
    """Return settings of a worker that takes a whole node of a pool, as far as berth knows it."""
    machine = pool.settings.machine
    offered = pool.settings.for_pods
    if offered is None:
        return {"gpus": pool.per_node}
    if machine.known:
        cores = Decimal(machine.vcpus)
        memory_gib = Decimal(machine.memory_gib)
    else:
        cores = Decimal(offered.cpu_millis) / 1000
        memory_gib = Decimal(offered.memory) / GIB
    return {
        "gpus": pool.per_node,
        "cpu": str(max(1, int(cores * _WHOLE_NODE_CPU))),
        "memory": f"{max(1, int(memory_gib * _WHOLE_NODE_MEMORY))}Gi",
    }


def small_node_size(pool: Pool) -> dict[str, Any]:
    """Return settings of a worker in place of defaults that a small node has no room for."""
    offered = pool.settings.for_pods
    if offered is None:
        return {}
    room = {"cpu": Decimal(offered.cpu_millis) / 1000, "memory": Decimal(offered.memory)}
    whole_node = whole_node_size(pool)
    sizes: dict[str, Any] = {}
    for name, amount in room.items():
        default = parse_quantity(WorkerShape.model_fields[name].default)
        if default > amount:
            sizes[name] = whole_node[name]
    return sizes
