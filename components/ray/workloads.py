"""The manifests of RayJobs and RayServices: pure functions of their settings and of the RayCluster that they have, or run on."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import yaml

from berth.components.core.manifest import Manifest
from berth.components.core.types import canonical_quantity, parse_duration
from berth.components.isolation import SERVE_PORT, cluster_spec
from berth.components.ray import code
from berth.components.ray.submitter import submitter_pod
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings

CLUSTER_CONFIG = "berth/cluster-config"
"""The annotation of a RayService's head that tells all of its cluster's configuration apart from any other."""

_DIGITS = 8


def ray_job(settings: RayJobSettings, cluster: Manifest, labels: dict[str, str]) -> Manifest:
    """A RayJob, named after its content.

    KubeRay runs a RayJob once and takes no notice of later edits, so that an edit has to be another RayJob. What submits it is no part of its content: an edit of the cluster that it runs on runs it no second time.

    Args:
        settings: its complete settings.
        cluster: the RayCluster of its own, or that it runs on; in the namespace that it is to be in.
        labels: labels of the RayJob and of the pod that submits it.
    """
    spec: dict[str, Any] = {
        "entrypoint": settings.entrypoint,
        "submissionMode": settings.submission_mode,
        **_given("runtimeEnvYAML", yaml.safe_dump(settings.runtime_env) if settings.runtime_env else ""),
        **_given("entrypointNumCpus", _number(settings.entrypoint_num_cpus)),
        **_given("entrypointNumGpus", _number(settings.entrypoint_num_gpus)),
        **_given("activeDeadlineSeconds", parse_duration(settings.active_deadline) if settings.active_deadline else 0),
        **(_own_cluster(settings, cluster) if settings.own_cluster else _cluster_there(cluster)),
    }
    name = f"{settings.name}-{digest(spec)}"
    if settings.submission_mode == "K8sJobMode":
        head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
        spec["submitterPodTemplate"] = submitter_pod(head, labels)
    metadata = {"name": name, "namespace": cluster["metadata"]["namespace"], "labels": labels}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def ray_service(settings: RayServiceSettings, cluster: Manifest) -> Manifest:
    """A RayService: applications of Ray Serve on a RayCluster of their own.

    Args:
        settings: its complete settings.
        cluster: the RayCluster, of the RayService's name, namespace and labels.
    """
    config = _of_kuberays_making(cluster)
    head = config["headGroupSpec"]
    if settings.cluster.workers_at_most:
        # Replicas that are on the head would go with it, and it is what brings lost ones back
        # (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/rayservice-high-availability.html).
        head["rayStartParams"]["num-cpus"] = "0"
    for part in (head, *config["workerGroupSpecs"]):
        part["template"] = code.with_code(part["template"], settings.files)
    # Where a head names ports KubeRay makes no Service for requests without this one (kuberay v1.6.2, BuildServeService).
    head["template"]["spec"]["containers"][0]["ports"].append({"name": "serve", "containerPort": SERVE_PORT})
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": dict(cluster["metadata"]),
        "spec": {
            "serveConfigV2": yaml.safe_dump(code.on_python_path(settings.serve_config, settings.files)),
            "upgradeStrategy": {"type": "NewCluster" if settings.upgrade_strategy == "NewCluster" else "None"},
            "rayClusterConfig": config,
        },
    }


def as_kuberay_writes_it(manifest: Manifest) -> Manifest:
    """A RayJob or RayService in the very words in which KubeRay has it.

    KubeRay writes the whole object again when it first sees it, for its finalizer. What is then written another way is KubeRay's from
    then on: to a refresh a change, and to the next edit a conflict. Go leaves out what is empty, has a `scaleStrategy` in each group, and
    writes quantities in the largest unit (kuberay v1.6.2, ray-operator/apis/ray/v1; k8s.io/apimachinery, pkg/api/resource).

    Args:
        manifest: the RayJob or RayService.
    """
    written: Manifest = {**manifest, "spec": _written(manifest["spec"])}
    for group in (cluster_spec(written) or {}).get("workerGroupSpecs") or []:
        group.setdefault("scaleStrategy", {})
    return written


def with_fingerprint(service: Manifest) -> Manifest:
    """A RayService every edit of whose cluster is seen.

    By itself KubeRay compares clusters without their numbers of workers and their tolerations, so that an edit of these would go
    nowhere (kuberay v1.6.2, ray-operator/controllers/ray/rayservice_controller.go, isClusterSpecHashEqual).

    Args:
        service: the RayService, otherwise complete.
    """
    made = copy.deepcopy(service)
    template = made["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]
    annotations = template["metadata"].get("annotations", {})
    template["metadata"]["annotations"] = {**annotations, CLUSTER_CONFIG: digest(service["spec"]["rayClusterConfig"])}
    return made


def digest(value: Any) -> str:
    """A few digits that tell a value from any other."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _own_cluster(settings: RayJobSettings, cluster: Manifest) -> dict[str, Any]:
    shutdown, ttl = settings.shutdown_after_job_finishes, settings.ttl_after_finished
    return {
        "rayClusterSpec": _of_kuberays_making(cluster),
        **_given("shutdownAfterJobFinishes", shutdown),
        **_given("ttlSecondsAfterFinished", parse_duration(ttl) if ttl else 0),
        "backoffLimit": settings.backoff_limit,
    }


def _cluster_there(cluster: Manifest) -> dict[str, Any]:
    return {"clusterSelector": {"ray.io/cluster": cluster["metadata"]["name"]}}


def _of_kuberays_making(cluster: Manifest) -> dict[str, Any]:
    """The spec of a RayCluster that KubeRay makes: of these it refuses an `upgradeStrategy` of their own."""
    spec = copy.deepcopy(cluster_spec(cluster) or {})
    spec.pop("upgradeStrategy", None)
    return spec


# Maps of texts, in which an empty text is one.
_TEXTS = ("labels", "annotations", "nodeSelector", "rayStartParams", "clusterSelector")
_QUANTITIES = ("limits", "requests")


def _written(value: Any, key: str = "") -> Any:
    if isinstance(value, dict) and key in _QUANTITIES:
        return {name: canonical_quantity(str(amount)) for name, amount in value.items()}
    if isinstance(value, dict) and key not in _TEXTS:
        return {name: _written(inner, name) for name, inner in value.items() if inner not in ("", [])}
    if isinstance(value, list):
        return [_written(each) for each in value]
    return canonical_quantity(value) if key == "sizeLimit" else value


def _number(value: float | None) -> float:
    """Whole numbers without a fraction, as the API server gives them back."""
    return int(value) if value is not None and value == int(value) else value or 0


def _given(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}
