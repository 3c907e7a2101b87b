"""On which nodes a pod may run: those of one pool, with that pool's taints tolerated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stacks.settings.pool import PoolSettings
from stacks.settings.sharing import GPU

POOL_LABEL = "cloud.google.com/gke-nodepool"
"""GKE's label of every node: the name of its pool."""


def tolerations(pool: PoolSettings) -> list[dict[str, str]]:
    """Of the pool's own taints, and of the one that GKE sets on nodes with GPUs."""
    tolerated = [
        {
            "key": taint.key,
            "operator": "Equal",
            "value": taint.value,
            "effect": taint.effect,
        }
        for taint in pool.taints
    ]
    if pool.machine.gpus:
        tolerated.append({"key": GPU, "operator": "Exists", "effect": "NoSchedule"})
    return tolerated


def on_pools(pools: Iterable[str]) -> dict[str, Any]:
    """The affinity of a pod that runs on nodes of some pools only.

    Args:
        pools: the pools' names.
    """
    expression = {"key": POOL_LABEL, "operator": "In", "values": sorted(pools)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
