"""Reasons why RayClusters, RayJobs and RayServices are not ready, from the live cluster."""

from collections.abc import Iterable

from berth.components.cluster.api import (
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterError,
    Object,
)
from berth.components.cluster.devices import why_without_devices
from berth.components.cluster.object_fields import ObjectKey
from berth.components.cluster.pods import selected_pool
from berth.components.ray.live.cluster_condition import last_messages, reasons_not_ready
from berth.components.ray.live.job_condition import job_condition
from berth.components.ray.live.live_objects import LiveObjects
from berth.components.ray.live.service_condition import service_condition

GONE = (
    "it was deleted outside of Pulumi, and the state still has it; `pulumi refresh` takes note of"
    " that, and the update after it creates it again"
)
"""Reason of an object that does not exist."""


def reasons_of(live: LiveObjects, key: ObjectKey) -> list[str]:
    """Return why a RayCluster is not ready, from its pods and events; empty if it is ready."""
    cluster = live.find(RAY_CLUSTERS, key)
    if cluster is None:
        return [GONE]
    namespace = key[0]
    pods = live.pods[key]
    return reasons_not_ready(
        cluster,
        pods,
        live.warnings["RayCluster", *key],
        live.scaling[namespace],
        _without_devices(live, namespace, pods),
    )


def reasons_of_job(live: LiveObjects, key: ObjectKey, *, until_its_end: bool = False) -> list[str]:
    """Return why a RayJob does not run, or has not succeeded; empty if it does, or has."""
    job = live.find(RAY_JOBS, key)
    if job is None:
        return [GONE]
    condition = job_condition(job)
    if condition.succeeded or (condition.running and not until_its_end):
        return []
    reasons = [condition.reason] if condition.reason else []
    if not condition.failed and not condition.running:
        if condition.ray_cluster:
            reasons += _reasons_of_clusters(live, key[0], [condition.ray_cluster])
        # The submitter's Job has the name of the RayJob.
        reasons = reasons or _warnings(live, "Job", key) or _warnings(live, "RayJob", key)
    reasons = reasons or [str(condition)]
    return [*reasons, _way_to_run_again(key[1])] if condition.failed else reasons


def _way_to_run_again(ray_job: str) -> str:
    """Return how a RayJob that has ended runs again: its name ends in a hash of the job."""
    job = f"jobs.{ray_job.rpartition('-')[0]}"
    return (
        f"a job runs once: to run it again, edit it, for example {job}.runtimeEnv: {{env_vars:"
        f' {{RUN: "2"}}}}; or take {job} out of the settings'
    )


def reasons_of_service(live: LiveObjects, key: ObjectKey) -> list[str]:
    """Return why a RayService is not ready; empty if it is ready."""
    service = live.find(RAY_SERVICES, key)
    if service is None:
        return [GONE]
    condition = service_condition(service)
    if condition.ready:
        return []
    reasons = [*condition.reasons, *_reasons_of_clusters(live, key[0], condition.ray_clusters)]
    reasons = reasons or _warnings(live, "RayService", key)
    if not reasons and condition.seen and condition.ray_clusters and not condition.running:
        reasons = ["its RayCluster is ready, and Ray Serve has not started its applications yet"]
    if condition.serves_by_old_one and reasons:
        return [str(condition), *reasons]
    return reasons or [str(condition)]


def _without_devices(live: LiveObjects, namespace: str, pods: Iterable[Object]) -> dict[str, str]:
    """Return why pending pods lack the devices that they claim, by name of the pod."""
    waiting = [
        pod for pod in pods if pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")
    ]
    if not waiting:
        return {}
    try:
        inventory = live.inventory
        refused = live.refused_claims
        nodes = live.nodes
    except ClusterError:
        # An engineer may not list the claims of other berths; the scheduler's message remains.
        return {}
    reasons = {}
    for pod in waiting:
        name = pod["metadata"]["name"]
        refusal = refused.get((namespace, name), "")
        reasons[name] = why_without_devices(pod, inventory, nodes[selected_pool(pod)], refusal)
    return reasons


def _reasons_of_clusters(live: LiveObjects, namespace: str, names: Iterable[str]) -> list[str]:
    reasons = []
    for name in names:
        of_cluster = reasons_of(live, (namespace, name))
        reasons += [f"RayCluster {name}: {reason}" for reason in of_cluster]
    return reasons


def _warnings(live: LiveObjects, kind: str, key: ObjectKey) -> list[str]:
    return last_messages(live.warnings[(kind, *key)])
