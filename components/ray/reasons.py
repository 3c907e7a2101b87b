"""Reasons why a RayCluster, RayJob or RayService is not ready, from the live cluster."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.cluster.api import (
    EVENTS,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    ClusterError,
    Object,
    within,
)
from berth.components.cluster.devices import why_without_devices
from berth.components.cluster.inventory import inventory_of
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.condition import reasons_not_ready
from berth.components.ray.workload_condition import job_condition, service_condition

Key = tuple[str, str]
"""Namespace and name of a RayCluster, RayJob or RayService."""

_GONE = "it is gone"


def reasons_of(api: ClusterApi, key: Key) -> list[str]:
    """Return why a RayCluster is not ready, from its pods and events; empty if it is ready.

    Raises:
        ClusterError: the API server does not answer.
    """
    namespace, name = key
    cluster = _find(api, RAY_CLUSTERS, key)
    if cluster is None:
        return [_GONE]
    pods = pods_of(api, key)
    events = _warning_events(api, namespace, "RayCluster", name)
    # During a stockout the scheduler only sees that there is no node; the autoscaler knows why none
    # comes.
    scaling, _ = api.list(within(namespace, EVENTS), fieldSelector="involvedObject.kind=Pod,source=cluster-autoscaler")
    return reasons_not_ready(cluster, pods, events, scaling, _without_devices(api, namespace, pods))


def reasons_of_job(api: ClusterApi, key: Key, *, until_its_end: bool = False) -> list[str]:
    """Return why a RayJob does not run, or has not succeeded; empty if it does, or has.

    Args:
        api: client of the cluster.
        key: namespace and name of the RayJob.
        until_its_end: the job should have succeeded by now.

    Raises:
        ClusterError: the API server does not answer.
    """
    namespace, name = key
    job = _find(api, RAY_JOBS, key)
    if job is None:
        return [_GONE]
    condition = job_condition(job)
    if condition.succeeded or (condition.running and not until_its_end):
        return []
    reasons = [condition.reason] if condition.reason else []
    if not condition.failed and not condition.running:
        reasons += _reasons_of_clusters(api, namespace, filter(None, [condition.ray_cluster]))
        # The submitter's Job has the name of the RayJob.
        reasons = reasons or _warnings(api, namespace, "Job", name) or _warnings(api, namespace, "RayJob", name)
    return reasons or [str(condition)]


def reasons_of_service(api: ClusterApi, key: Key) -> list[str]:
    """Return why a RayService is not ready; empty if it is ready.

    Raises:
        ClusterError: the API server does not answer.
    """
    namespace, name = key
    service = _find(api, RAY_SERVICES, key)
    if service is None:
        return [_GONE]
    condition = service_condition(service)
    if condition.ready:
        return []
    reasons = [*condition.reasons, *_reasons_of_clusters(api, namespace, condition.ray_clusters)]
    reasons = reasons or _warnings(api, namespace, "RayService", name)
    if not reasons and condition.seen and condition.ray_clusters and not condition.running:
        reasons = ["its RayCluster is ready, and Ray Serve has not started its applications yet"]
    return reasons or [str(condition)]


def pods_of(api: ClusterApi, key: Key) -> list[Object]:
    """Return the pods of a RayCluster."""
    namespace, name = key
    return api.list(within(namespace, PODS), labelSelector=f"ray.io/cluster={name}")[0]


def pool_of(pod: Object) -> str:
    """Return the node pool that a pod selects; "" for none."""
    return str((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, ""))


def _without_devices(api: ClusterApi, namespace: str, pods: Iterable[Object]) -> dict[str, str]:
    """Return why pending pods lack the devices that they claim, by name of the pod."""
    waiting = [pod for pod in pods if pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")]
    if not waiting:
        return {}
    try:
        inventory = inventory_of(api)
        pools = {pool_of(pod) for pod in waiting}
        nodes = {pool: api.list(NODES, labelSelector=f"{POOL_LABEL}={pool}")[0] for pool in pools}
        refusals, _ = api.list(within(namespace, EVENTS), fieldSelector="reason=FailedResourceClaimCreation")
    except ClusterError:
        # An engineer may not list the claims of other berths; the scheduler's message remains.
        return {}
    refused = {event["involvedObject"]["name"]: str(event.get("message")) for event in refusals}
    names = [pod["metadata"]["name"] for pod in waiting]
    return {
        name: why_without_devices(pod, inventory, nodes[pool_of(pod)], refused=refused.get(name, ""))
        for name, pod in zip(names, waiting, strict=True)
    }


def _reasons_of_clusters(api: ClusterApi, namespace: str, names: Iterable[str]) -> list[str]:
    return [f"RayCluster {name}: {reason}" for name in names for reason in reasons_of(api, (namespace, name))]


def _warnings(api: ClusterApi, namespace: str, kind: str, name: str) -> list[str]:
    """Return the last distinct warnings about an object."""
    events = _warning_events(api, namespace, kind, name)
    return list(dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events))[-3:]


def _warning_events(api: ClusterApi, namespace: str, kind: str, name: str) -> list[Object]:
    about = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
    return api.list(within(namespace, EVENTS), fieldSelector=about)[0]


def _find(api: ClusterApi, path: str, key: Key) -> Object | None:
    """Return an object of a collection; None if it does not exist."""
    namespace, name = key
    found, _ = api.list(within(namespace, path), fieldSelector=f"metadata.name={name}")
    return found[0] if found else None
