"""Scheduling of pods onto the nodes of pools: tolerations and node affinity."""

from collections.abc import Iterable
from typing import Any

from berth.components.gke.pool_settings import PoolSettings
from berth.components.hardware.names import ARCHITECTURE, GPU_RESOURCE, POOL_LABEL


def tolerations(pool: PoolSettings) -> list[dict[str, str]]:
    """Return tolerations of a pool's own taints, and of those that GKE sets on its nodes."""
    tolerated = [
        {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        for taint in pool.taints
    ]
    if pool.machine.gpus:
        tolerated.append({"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"})
    if pool.machine.series.arm64:
        tolerated.append(
            {"key": ARCHITECTURE, "operator": "Equal", "value": "arm64", "effect": "NoSchedule"}
        )
    return tolerated


def pool_affinity(pools: Iterable[str]) -> dict[str, Any]:
    """Return the affinity of a pod that runs only on nodes of the named pools."""
    expression = {"key": POOL_LABEL, "operator": "In", "values": sorted(pools)}
    terms = [{"matchExpressions": [expression]}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
