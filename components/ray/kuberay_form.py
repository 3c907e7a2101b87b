"""Form in which KubeRay writes RayJobs and RayServices, and RayClusters inside them."""

import copy
from typing import Any

from berth.components.core.manifest import Manifest, forced
from berth.components.core.types import canonical_quantity
from berth.components.isolation import cluster_spec

_TEXTS = ("labels", "annotations", "nodeSelector", "rayStartParams", "clusterSelector")
"""Maps of texts, which keep empty texts."""

_QUANTITIES = ("limits", "requests")


def shared_with_kuberay(manifest: Manifest) -> Manifest:
    """Return a RayJob or RayService as applied: KubeRay writes parts of it, so edits need force."""
    return forced(as_kuberay_writes_it(manifest))


def as_kuberay_writes_it(manifest: Manifest) -> Manifest:
    """Return a RayJob or RayService in the form in which KubeRay writes it.

    KubeRay writes the whole object when it adds its finalizer. A field in another form then belongs
    to KubeRay: a refresh sees a change, and the next edit conflicts. Go omits empty values, adds a
    `scaleStrategy` to each group, and writes quantities in the largest unit (kuberay v1.6.2,
    ray-operator/apis/ray/v1; k8s.io/apimachinery, pkg/api/resource).
    """
    canonical: Manifest = {**manifest, "spec": _canonical(manifest["spec"])}
    for group in (cluster_spec(canonical) or {}).get("workerGroupSpecs") or []:
        group.setdefault("scaleStrategy", {})
    return canonical


def spec_for_kuberay(cluster: Manifest) -> Manifest:
    """Return the spec of a RayCluster that KubeRay creates, without `upgradeStrategy`."""
    spec = copy.deepcopy(cluster_spec(cluster) or {})
    spec.pop("upgradeStrategy", None)
    return spec


def _canonical(value: Any, key: str = "") -> Any:
    """Return plain data as KubeRay writes it; `key` is that of the value."""
    if isinstance(value, dict) and key in _QUANTITIES:
        return {name: canonical_quantity(str(amount)) for name, amount in value.items()}
    if isinstance(value, dict) and key not in _TEXTS:
        filled = {name: inner for name, inner in value.items() if inner not in ("", [])}
        return {name: _canonical(inner, name) for name, inner in filled.items()}
    if isinstance(value, list):
        return [_canonical(entry) for entry in value]
    return canonical_quantity(value) if key == "sizeLimit" else value
