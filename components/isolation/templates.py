"""Pod templates in the manifests of Ray's kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

# Where the spec of a RayCluster is (kuberay v1.6.2, ray-operator/apis/ray/v1).
_CLUSTER_SPEC = {"RayCluster": (), "RayJob": ("rayClusterSpec",), "RayService": ("rayClusterConfig",)}


def cluster_spec(manifest: Object) -> Object | None:
    """The spec of the RayCluster that a manifest is, or makes; None where it makes none."""
    spec = manifest.get("spec") or {}
    if manifest["kind"] not in _CLUSTER_SPEC:
        return None
    for key in _CLUSTER_SPEC[manifest["kind"]]:
        spec = spec.get(key)
    return spec or None


def templates(manifest: Object) -> Iterator[tuple[str, Object, int]]:
    """Every pod template of a manifest: `head`, `worker` or `submitter`, the template, and how many pods of it there can be."""
    if spec := cluster_spec(manifest):
        clusters = 2 if _has_two(manifest) else 1
        yield "head", spec["headGroupSpec"]["template"], clusters
        for group in spec.get("workerGroupSpecs") or []:
            workers = max(group.get("replicas") or 0, group.get("maxReplicas") or 0)
            yield "worker", group["template"], clusters * workers
    if submitter := (manifest.get("spec") or {}).get("submitterPodTemplate"):
        yield "submitter", submitter, 1


def _has_two(manifest: Object) -> bool:
    """While a RayService moves to a new cluster the old one serves on; unless it says otherwise that is what it does."""
    strategy = (manifest.get("spec") or {}).get("upgradeStrategy") or {}
    return manifest["kind"] == "RayService" and strategy.get("type") != "None"


def autoscales(manifest: Object) -> bool:
    """Ray's autoscaler runs beside the head, and asks the API server."""
    return bool((cluster_spec(manifest) or {}).get("enableInTreeAutoscaling"))
