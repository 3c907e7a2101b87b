"""Manifests of RayJobs and RayServices: pure functions of settings and RayCluster."""

import copy
import hashlib
import json
from typing import Any

import yaml

from berth.components.core.manifest import Manifest
from berth.components.core.types import canonical_quantity, parse_duration
from berth.components.isolation import SERVE_PORT, cluster_spec
from berth.components.ray import code
from berth.components.ray.manifest import given
from berth.components.ray.submitter import submitter_pod
from berth.components.ray.workload_settings import JobShape, RayJobSettings, RayServiceSettings

CLUSTER_CONFIG = "berth/cluster-config"
"""Annotation of a RayService's head with the fingerprint of the cluster's configuration."""

_DIGITS = 8


def ray_job(job: RayJobSettings, cluster: Manifest, labels: dict[str, str]) -> Manifest:
    """Return a RayJob, named after its content.

    KubeRay runs a RayJob once and ignores later edits, so an edit must create another RayJob. The
    submitter is not part of the content: an edit of an existing cluster does not run its jobs
    again.
    """
    settings = job.settings
    spec: dict[str, Any] = {
        "entrypoint": settings.entrypoint,
        "submissionMode": settings.submission_mode,
        **given("runtimeEnvYAML", yaml.safe_dump(settings.runtime_env) if settings.runtime_env else ""),
        **given("entrypointNumCpus", _number(settings.entrypoint_num_cpus)),
        **given("entrypointNumGpus", _number(settings.entrypoint_num_gpus)),
        **given("activeDeadlineSeconds", parse_duration(settings.active_deadline) if settings.active_deadline else 0),
        **(_own_cluster(settings, cluster) if job.own_cluster else _cluster_there(cluster)),
    }
    name = f"{job.name}-{digest(spec)}"
    if settings.submission_mode == "K8sJobMode":
        head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
        spec["submitterPodTemplate"] = submitter_pod(head, labels)
    metadata = {"name": name, "namespace": cluster["metadata"]["namespace"], "labels": labels}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}


def ray_service(service: RayServiceSettings, cluster: Manifest) -> Manifest:
    """Return a RayService: applications of Ray Serve on a RayCluster of their own."""
    config = _spec_for_kuberay(cluster)
    head = config["headGroupSpec"]
    if service.cluster.workers_at_most:
        # The head restarts lost replicas, so that replicas on the head would be lost with it
        # (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/rayservice-high-availability.html).
        head["rayStartParams"].setdefault("num-cpus", "0")
    for part in (head, *config["workerGroupSpecs"]):
        part["template"] = code.with_code(part["template"], service.files)
    # Without this port KubeRay creates no Service for requests if a head lists ports (kuberay
    # v1.6.2, BuildServeService).
    head["template"]["spec"]["containers"][0]["ports"].append({"name": "serve", "containerPort": SERVE_PORT})
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": dict(cluster["metadata"]),
        "spec": {
            "serveConfigV2": yaml.safe_dump(code.on_python_path(service.settings.serve_config, service.files)),
            "upgradeStrategy": {"type": "NewCluster" if service.settings.upgrade_strategy == "NewCluster" else "None"},
            "rayClusterConfig": config,
        },
    }


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


def with_fingerprint(service: Manifest) -> Manifest:
    """Return a complete RayService with the fingerprint of its cluster's configuration.

    KubeRay compares clusters without numbers of workers and tolerations, and would ignore an edit
    of these (kuberay v1.6.2, ray-operator/controllers/ray/rayservice_controller.go,
    isClusterSpecHashEqual).
    """
    config = copy.deepcopy(service["spec"]["rayClusterConfig"])
    metadata = config["headGroupSpec"]["template"]["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), CLUSTER_CONFIG: digest(config)}
    return {**service, "spec": {**service["spec"], "rayClusterConfig": config}}


def digest(value: Any) -> str:
    """Return a short hash of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _own_cluster(settings: JobShape, cluster: Manifest) -> dict[str, Any]:
    shutdown, ttl = settings.shutdown_after_job_finishes, settings.ttl_after_finished
    return {
        "rayClusterSpec": _spec_for_kuberay(cluster),
        **given("shutdownAfterJobFinishes", shutdown),
        **given("ttlSecondsAfterFinished", parse_duration(ttl) if ttl else 0),
        "backoffLimit": settings.backoff_limit,
    }


def _cluster_there(cluster: Manifest) -> dict[str, Any]:
    return {"clusterSelector": {"ray.io/cluster": cluster["metadata"]["name"]}}


def _spec_for_kuberay(cluster: Manifest) -> dict[str, Any]:
    """Return the spec of a RayCluster that KubeRay creates, without `upgradeStrategy`."""
    spec = copy.deepcopy(cluster_spec(cluster) or {})
    spec.pop("upgradeStrategy", None)
    return spec


# Maps of strings, which keep empty strings.
_TEXTS = ("labels", "annotations", "nodeSelector", "rayStartParams", "clusterSelector")
_QUANTITIES = ("limits", "requests")


def _canonical(value: Any, key: str = "") -> Any:
    if isinstance(value, dict) and key in _QUANTITIES:
        return {name: canonical_quantity(str(amount)) for name, amount in value.items()}
    if isinstance(value, dict) and key not in _TEXTS:
        return {name: _canonical(inner, name) for name, inner in value.items() if inner not in ("", [])}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return canonical_quantity(value) if key == "sizeLimit" else value


def _number(value: float | None) -> float:
    """Return a number in the API server's form: a whole number without a fraction."""
    return int(value) if value is not None and value == int(value) else value or 0
