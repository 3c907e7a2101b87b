"""Pod templates in RayClusters, RayJobs and RayServices."""

from collections.abc import Iterable, Iterator
from typing import Any

from berth.components.hardware.names import POOL_LABEL

Object = dict[str, Any]

# Key of `spec` with the spec of the RayCluster (kuberay v1.6.2, ray-operator/apis/ray/v1).
_CLUSTER_SPEC = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}

# kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go.
_AUTOSCALER = {"limits": {"cpu": "500m", "memory": "512Mi"}}


def cluster_spec(manifest: Object) -> Object | None:
    """Return the spec of the RayCluster that a manifest is or makes; None for other manifests."""
    kind = manifest["kind"]
    spec = manifest.get("spec") or {}
    if kind == "RayCluster":
        return spec or None
    return spec.get(_CLUSTER_SPEC.get(kind)) or None


def pod_templates(manifest: Object) -> Iterator[tuple[str, Object, int]]:
    """Yield kind (`head`, `worker`, `submitter`), template and largest number of its pods."""
    if spec := cluster_spec(manifest):
        strategy = (manifest["spec"].get("upgradeStrategy") or {}).get("type")
        # A RayService keeps the old cluster until the new one serves, unless its strategy is None.
        clusters = 2 if manifest["kind"] == "RayService" and strategy != "None" else 1
        yield "head", spec["headGroupSpec"]["template"], clusters
        for group in spec.get("workerGroupSpecs") or []:
            workers = max(group.get("replicas") or 0, group.get("maxReplicas") or 0)
            yield "worker", group["template"], clusters * workers
    if submitter := (manifest.get("spec") or {}).get("submitterPodTemplate"):
        yield "submitter", submitter, 1


def pods_of(manifests: Iterable[Object]) -> Iterator[Object]:
    """Yield the spec of every pod template."""
    for manifest in manifests:
        for _, template, _ in pod_templates(manifest):
            yield template["spec"]


def pools_of(manifests: Iterable[Object]) -> list[str]:
    """Return the node pools that the pods of manifests select, sorted."""
    selected = [(pod.get("nodeSelector") or {}).get(POOL_LABEL) for pod in pods_of(manifests)]
    return sorted({pool for pool in selected if pool})


def pull_secrets(manifests: Iterable[Object]) -> set[str]:
    """Return the Secrets with logins to image registries that pods name."""
    names: set[str] = set()
    for pod in pods_of(manifests):
        names.update(entry["name"] for entry in pod.get("imagePullSecrets") or [])
    return names


def secret_variables(manifests: Iterable[Object]) -> dict[str, Object]:
    """Return the variables of pods whose values are in Secrets: name and key of the Secret."""
    references: dict[str, Object] = {}
    for pod in pods_of(manifests):
        for container in (*(pod.get("initContainers") or []), *pod["containers"]):
            for variable in container.get("env") or []:
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if reference:
                    references[variable["name"]] = reference
    return references


def autoscales(manifest: Object) -> bool:
    """Return whether Ray's autoscaler runs beside the head."""
    return bool((cluster_spec(manifest) or {}).get("enableInTreeAutoscaling"))


def autoscaler_of(manifest: Object) -> list[Object]:
    """Return the container of Ray's autoscaler, which KubeRay adds to a head; [] without it."""
    if not autoscales(manifest):
        return []
    options = (cluster_spec(manifest) or {}).get("autoscalerOptions") or {}
    return [{"resources": options.get("resources") or _AUTOSCALER}]
