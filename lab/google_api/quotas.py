"""Quotas: the older ones with Compute Engine's regions, all of them by the Cloud Quotas API.

In the conditions each is one metric, such as `NVIDIA_B200_GPUS`; Google has one quota for the newer
GPUs, with a limit for each family
(https://docs.cloud.google.com/docs/quotas/implement-common-use-cases).

Answers to (read):
    https://docs.cloud.google.com/docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos
    (shape), and https://docs.cloud.google.com/docs/quotas/implement-common-use-cases (quotas by GPU
    family).
"""

from __future__ import annotations

from berth.components.hardware.machines import GPUS
from berth.lab.google_api.simulated import Answer, Simulated
from berth.lab.plugins.gcp.errors import not_found

_NEWER = tuple(gpu.quota for gpu in GPUS.values() if not gpu.own_quota)
_FAMILY_QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region"
_REGIONAL, _EVERYWHERE = "-per-project-region", "-per-project"
_NO_LIMIT = "-1"


def listed(metric: str) -> bool:
    """Compute Engine's regions tell of it."""
    return metric.removeprefix("PREEMPTIBLE_").removesuffix("_GPUS") not in _NEWER


def quota_info(simulated: Simulated, project: str, quota: str) -> Answer:
    """quotaInfos.get: the limits of one quota, with an entry for all that none is given for."""
    entry = simulated.conditions.project(project)
    limits = entry.quotas if entry else {}
    if not quota.endswith((_REGIONAL, _EVERYWHERE)):
        raise not_found(f"projects/{project}/locations/global/services/compute.googleapis.com/quotaInfos/{quota}")
    infos: list[Answer] = [{"details": {"value": _NO_LIMIT}}]
    if quota == _FAMILY_QUOTA:
        infos += [
            {
                "dimensions": {"region": region, "gpu_family": family},
                "details": {"value": str(metrics[f"{family}_GPUS"])},
            }
            for region, metrics in limits.items()
            for family in _NEWER
            if f"{family}_GPUS" in metrics
        ]
    elif quota.endswith(_REGIONAL):
        metric = quota.removesuffix(_REGIONAL).replace("-", "_")
        infos += [
            {"dimensions": {"region": region}, "details": {"value": str(metrics[metric])}}
            for region, metrics in limits.items()
            if metric in metrics
        ]
    else:
        metric = quota.removesuffix(_EVERYWHERE).replace("-", "_")
        infos += [
            {"details": {"value": str(limit)}} for limit in [limits.get("global", {}).get(metric)] if limit is not None
        ]
        infos = infos[-1:]
    return {"quotaId": quota, "service": "compute.googleapis.com", "dimensionsInfos": infos}
