"""Completion of a RayCluster's settings by its pools: from plain data to what holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from berth.components.fabric import NcclShape, nccl_of, nics_of
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.layers import GroupLayer, Layer, group_layers
from berth.components.ray.settings import RayShape, WorkerGroupShape
from berth.components.sharing import Pool, Pools


@dataclass(frozen=True)
class GroupOnPool:
    """A group of workers as written, and the pool that its workers run on."""

    layer: GroupLayer
    pool: Pool


def complete_cluster(
    name: str, shape: RayShape, workers: Pool | Pools, head: Pool, priority: str
) -> RayClusterSettings:
    """Return the complete settings of a RayCluster.

    Args:
        name: name of the RayCluster.
        shape: settings as written, over all defaults.
        workers: pool of the workers, or pools by the names of their groups.
        head: pool of the head.
        priority: PriorityClass of pods whose settings name none.
    """
    settings = shape.written_values()
    groups = [
        GroupOnPool(layer, workers if isinstance(workers, Pool) else workers[layer.name])
        for layer in group_layers(settings)
    ]
    return completed_settings(name, settings, groups, head, priority)


def completed_settings(
    name: str, settings: Layer, groups: Sequence[GroupOnPool], head: Pool, priority: str
) -> RayClusterSettings:
    """Return the complete settings of a RayCluster whose groups and head have their pools.

    Args:
        name: name of the RayCluster.
        settings: settings as written, over those of `defaults`.
        groups: groups of workers, with the sizes that they have from their pools.
        head: pool of the head.
        priority: PriorityClass of pods whose settings name none.
    """
    nccl = NcclShape.model_validate(settings.get("nccl", {}))
    values = {
        "priority": priority,
        **{key: value for key, value in settings.items() if key in _SETTINGS_THAT_HOLD},
        "name": name,
        "head": Head.model_validate({**settings.get("head", {}), "pool": head.name}),
        "groups": [_completed_group(group, nccl) for group in groups],
    }
    return RayClusterSettings.model_validate(values)


_SETTINGS_THAT_HOLD = RayClusterSettings.model_fields.keys()


def _completed_group(group: GroupOnPool, nccl: NcclShape) -> WorkerGroup:
    """Return a group with what its pool decides: GPUs' resource name, NICs, limit and NCCL."""
    pool = group.pool
    shape = WorkerGroupShape.model_validate(group.layer.values)
    nics = nics_of(shape.nics, shape.gpus, pool)
    return WorkerGroup.model_validate(
        {
            **group.layer.values,
            "name": group.layer.name,
            "settings_path": group.layer.path,
            "pool": pool.name,
            "gpu_resource": _gpu_resource(shape, pool),
            "nics": nics,
            "cpu_limit": shape.cpu_limit or shape.cpu,
            "nccl": nccl_of(nccl, shape.gpus, nics, shape.memory, pool),
        }
    )


def _gpu_resource(shape: WorkerGroupShape, pool: Pool) -> str:
    """Return the resource name of a group's GPUs: as written, or as the pool advertises it."""
    advertised = pool.offer.resource if pool.offer else GPU_RESOURCE
    if pool.settings.by_dra:
        return advertised
    return shape.gpu_resource or advertised
