"""Manifest of a RayJob: a pure function of its settings and its RayCluster."""

import yaml

from berth.components.core.manifest import Manifest, short_hash
from berth.components.programs.lifetimes import parse_duration
from berth.components.ray.job_settings import JobShape, RayJobSettings
from berth.components.ray.kuberay_form import spec_for_kuberay
from berth.components.ray.submitter import submitter_pod


def ray_job(job: RayJobSettings, cluster: Manifest, labels: dict[str, str]) -> Manifest:
    """Return a RayJob, named after its content.

    KubeRay runs a RayJob once and ignores later edits, so an edit must create another RayJob. The
    submitter is not part of the content: an edit of an existing cluster does not run its jobs
    again.

    Args:
        job: the job.
        cluster: manifest of the RayCluster that runs the job.
        labels: labels of the job's objects.
    """
    spec = _spec(job.settings)
    if job.own_cluster:
        spec |= _spec_of_own_cluster(job.settings, cluster)
    else:
        spec["clusterSelector"] = {"ray.io/cluster": cluster["metadata"]["name"]}
    name = f"{job.name}-{short_hash(spec)}"
    if job.settings.submission_mode == "K8sJobMode":
        head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
        spec["submitterPodTemplate"] = submitter_pod(head, labels)
    namespace = cluster["metadata"]["namespace"]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def _spec(settings: JobShape) -> Manifest:
    """Return what a job has on any RayCluster."""
    spec: Manifest = {
        "entrypoint": settings.entrypoint,
        "submissionMode": settings.submission_mode,
    }
    if settings.runtime_env:
        spec["runtimeEnvYAML"] = yaml.safe_dump(settings.runtime_env)
    if settings.entrypoint_num_cpus:
        spec["entrypointNumCpus"] = _json_number(settings.entrypoint_num_cpus)
    if settings.entrypoint_num_gpus:
        spec["entrypointNumGpus"] = _json_number(settings.entrypoint_num_gpus)
    if settings.active_deadline:
        spec["activeDeadlineSeconds"] = parse_duration(settings.active_deadline)
    return spec


def _spec_of_own_cluster(settings: JobShape, cluster: Manifest) -> Manifest:
    """Return what a job has on a RayCluster of its own."""
    spec: Manifest = {
        "rayClusterSpec": spec_for_kuberay(cluster),
        "backoffLimit": settings.backoff_limit,
    }
    if settings.shutdown_after_job_finishes:
        spec["shutdownAfterJobFinishes"] = True
    if settings.ttl_after_finished:
        spec["ttlSecondsAfterFinished"] = parse_duration(settings.ttl_after_finished)
    return spec


def _json_number(value: float) -> float:
    """Return a number in the API server's form: a whole number without a fraction."""
    return int(value) if value == int(value) else value
