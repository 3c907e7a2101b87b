"""Complete settings of a RayCluster: defaults that follow from its pools."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from berth.components.fabric import nccl_of, nics_of
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.lifecycle import complete as complete_lifecycle
from berth.components.ray.groups import groups_of, within
from berth.components.ray.settings import RayClusterSettings, RayShape, WorkerGroupShape
from berth.components.sharing import Pool, Pools

# Share of a node that a worker on a whole node requests; the rest is for GKE's reservation and
# daemons. The A4 recipe of the DraNet documentation requests 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")


def whole_node(pool: Pool) -> dict[str, Any]:
    """Return the size of a worker that takes a whole node of a pool."""
    machine = pool.settings.machine
    return {
        "gpus": pool.per_node,
        "cpu": str(max(1, int(machine.vcpus * _WHOLE_NODE_CPU))),
        "memory": f"{max(1, int(machine.memory_gib * _WHOLE_NODE_MEMORY))}Gi",
    }


def complete(
    name: str,
    shape: RayShape,
    workers: Pool | Pools,
    head: Pool,
    priority: str,
    groups: Mapping[str, WorkerGroupShape] | None = None,
) -> RayClusterSettings:
    """Return the complete settings of a RayCluster.

    Args:
        name: name of the RayCluster.
        shape: the settings as written, over all defaults.
        workers: pool of the workers, or pools by the group's name.
        head: pool of the head.
        priority: PriorityClass of the pods unless the settings name one.
        groups: groups of workers by name. Default: as the shape has them.
    """
    groups = groups_of(shape) if groups is None else groups
    pools = dict.fromkeys(groups, workers) if isinstance(workers, Pool) else workers
    return RayClusterSettings.model_validate(
        shape.model_dump()
        | {
            "name": name,
            "groups": [_group(shape, group_name, group, pools[group_name]) for group_name, group in groups.items()],
            "head": shape.head.model_dump() | {"pool": head.name},
            "priority": shape.priority or priority,
            "lifecycle": complete_lifecycle(shape.lifecycle).model_dump(),
        }
    )


def _group(shape: RayShape, name: str, group: WorkerGroupShape, pool: Pool) -> dict[str, Any]:
    advertised = pool.offer.resource if pool.offer else GPU_RESOURCE
    nics = nics_of(group.nics, group.gpus, pool)
    from_pool = {
        "pool": pool.name,
        "gpu_resource": advertised if pool.settings.by_dra else group.gpu_resource or advertised,
        "nics": nics,
        "cpu_limit": group.cpu_limit or group.cpu,
    }
    return {
        "name": name,
        "workers": group.workers,
        "worker": group.model_dump(exclude={"workers"}) | from_pool,
        "nccl": nccl_of(shape.nccl, group.gpus, nics, group.memory, pool),
        "within": within(shape, name),
    }
