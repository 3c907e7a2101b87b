"""Complete settings of a RayCluster: defaults that follow from its pools."""

from __future__ import annotations

from decimal import Decimal

from berth.components.fabric import nccl_of, nics_of
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.lifecycle import complete as complete_lifecycle
from berth.components.ray.settings import RayClusterSettings, RayShape
from berth.components.sharing import Pool

# Share of a node that a worker on a whole node requests; the rest is for GKE's reservation and
# daemons. The A4 recipe of the DraNet documentation requests 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")


def whole_node(pool: Pool) -> RayShape:
    """Return the size of a worker that takes a whole node of a pool."""
    machine = pool.settings.machine
    worker = {
        "gpus": pool.per_node,
        "cpu": str(max(1, int(machine.vcpus * _WHOLE_NODE_CPU))),
        "memory": f"{max(1, int(machine.memory_gib * _WHOLE_NODE_MEMORY))}Gi",
    }
    return RayShape.model_validate({"worker": worker})


def complete(name: str, shape: RayShape, workers: Pool, head: Pool, priority: str) -> RayClusterSettings:
    """Return the complete settings of a RayCluster.

    Args:
        name: name of the RayCluster.
        shape: the settings as written, over all defaults.
        workers: pool of the workers.
        head: pool of the head.
        priority: PriorityClass of the pods unless the settings name one.
    """
    worker = shape.worker
    advertised = workers.offer.resource if workers.offer else GPU_RESOURCE
    nics = nics_of(worker.nics, worker.gpus, workers)
    from_pools = {
        "pool": workers.name,
        "gpu_resource": advertised if workers.settings.by_dra else worker.gpu_resource or advertised,
        "nics": nics,
        "cpu_limit": worker.cpu_limit or worker.cpu,
    }
    return RayClusterSettings.model_validate(
        shape.model_dump()
        | {
            "name": name,
            "worker": worker.model_dump() | from_pools,
            "head": shape.head.model_dump() | {"pool": head.name},
            "nccl": nccl_of(shape.nccl, worker.gpus, nics, worker.memory, workers).model_dump(),
            "priority": shape.priority or priority,
            "lifecycle": complete_lifecycle(shape.lifecycle).model_dump(),
        }
    )
