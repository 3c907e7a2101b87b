"""Reasons why a RayCluster, RayJob or RayService is not ready, from the live cluster."""

from collections.abc import Iterable

from berth.components.cluster.api import RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES, ClusterError, Object
from berth.components.cluster.devices import why_without_devices
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.condition import reasons_not_ready
from berth.components.ray.evidence import Evidence, Key
from berth.components.ray.workload_condition import job_condition, service_condition

GONE = (
    "it was deleted outside of Pulumi, and the state still has it; `pulumi refresh` takes note of that, and the update"
    " after it creates it again"
)
"""Reason of an object that does not exist."""


def reasons_of(evidence: Evidence, key: Key) -> list[str]:
    """Return why a RayCluster is not ready, from its pods and events; empty if it is ready."""
    cluster = evidence.find(RAY_CLUSTERS, key)
    if cluster is None:
        return [GONE]
    pods, events, scaling = evidence.pods[key], evidence.warnings["RayCluster", *key], evidence.scaling[key[0]]
    return reasons_not_ready(cluster, pods, events, scaling, _without_devices(evidence, key[0], pods))


def reasons_of_job(evidence: Evidence, key: Key, *, until_its_end: bool = False) -> list[str]:
    """Return why a RayJob does not run, or has not succeeded; empty if it does, or has."""
    job = evidence.find(RAY_JOBS, key)
    if job is None:
        return [GONE]
    condition = job_condition(job)
    if condition.succeeded or (condition.running and not until_its_end):
        return []
    reasons = [condition.reason] if condition.reason else []
    if not condition.failed and not condition.running:
        reasons += _reasons_of_clusters(evidence, key[0], filter(None, [condition.ray_cluster]))
        # The submitter's Job has the name of the RayJob.
        reasons = reasons or _warnings(evidence, "Job", key) or _warnings(evidence, "RayJob", key)
    return reasons or [str(condition)]


def reasons_of_service(evidence: Evidence, key: Key) -> list[str]:
    """Return why a RayService is not ready; empty if it is ready."""
    service = evidence.find(RAY_SERVICES, key)
    if service is None:
        return [GONE]
    condition = service_condition(service)
    if condition.ready:
        return []
    reasons = [*condition.reasons, *_reasons_of_clusters(evidence, key[0], condition.ray_clusters)]
    reasons = reasons or _warnings(evidence, "RayService", key)
    if not reasons and condition.seen and condition.ray_clusters and not condition.running:
        reasons = ["its RayCluster is ready, and Ray Serve has not started its applications yet"]
    return reasons or [str(condition)]


def pool_of(pod: Object) -> str:
    """Return the node pool that a pod selects; "" for none."""
    return str((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, ""))


def _without_devices(evidence: Evidence, namespace: str, pods: Iterable[Object]) -> dict[str, str]:
    """Return why pending pods lack the devices that they claim, by name of the pod."""
    waiting = [pod for pod in pods if pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")]
    if not waiting:
        return {}
    try:
        inventory, refused = evidence.inventory, evidence.refused_claims(namespace)
        nodes = {pool: evidence.nodes[pool] for pool in map(pool_of, waiting)}
    except ClusterError:
        # An engineer may not list the claims of other berths; the scheduler's message remains.
        return {}
    names = [pod["metadata"]["name"] for pod in waiting]
    return {
        name: why_without_devices(pod, inventory, nodes[pool_of(pod)], refused=refused.get(name, ""))
        for name, pod in zip(names, waiting, strict=True)
    }


def _reasons_of_clusters(evidence: Evidence, namespace: str, names: Iterable[str]) -> list[str]:
    return [f"RayCluster {name}: {reason}" for name in names for reason in reasons_of(evidence, (namespace, name))]


def _warnings(evidence: Evidence, kind: str, key: Key) -> list[str]:
    events = evidence.warnings[(kind, *key)]
    return list(dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events))[-3:]
