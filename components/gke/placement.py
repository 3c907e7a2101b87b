"""On which nodes a pod may run: those of one pool, with that pool's taints tolerated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from berth.components.gke.pool_settings import PoolSettings
from berth.components.hardware.names import GPU_RESOURCE, POOL_LABEL, QUEUED


def tolerations(pool: PoolSettings) -> list[dict[str, str]]:
    """Tolerations of a pod on a pool: for the pool's own taints, and for those that GKE sets on its nodes."""
    tolerated = [
        {
            "key": taint.key,
            "operator": "Equal",
            "value": taint.value,
            "effect": taint.effect,
        }
        for taint in pool.taints
    ]
    if pool.capacity.queued:
        tolerated.append({"key": QUEUED, "operator": "Exists", "effect": "NoSchedule"})
    if pool.machine.gpus:
        tolerated.append({"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"})
    return tolerated


def on_pools(pools: Iterable[str]) -> dict[str, Any]:
    """The affinity of a pod that runs on nodes of some pools only.

    Args:
        pools: the pools' names.
    """
    expression = {"key": POOL_LABEL, "operator": "In", "values": sorted(pools)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
