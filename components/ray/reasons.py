"""Reasons why RayClusters, RayJobs and RayServices are not ready, from the live cluster."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from berth.components.cluster.api import (
    EVENTS,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterError,
    Object,
    Reader,
    in_namespace,
)
from berth.components.cluster.devices import why_without_devices
from berth.components.cluster.inventory import Inventory, inventory_of
from berth.components.cluster.mirror import Snapshot
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.conditions.cluster import last_messages, reasons_not_ready
from berth.components.ray.conditions.job import job_condition
from berth.components.ray.conditions.service import service_condition

Key = tuple[str, str]
"""Namespace and name of a RayCluster, RayJob or RayService."""

SCALING = {"fieldSelector": "involvedObject.kind=Pod,source=cluster-autoscaler"}
"""Query for the cluster autoscaler's events about pods."""

_WARNINGS = {"fieldSelector": "type=Warning"}
_OF_CLUSTER = "ray.io/cluster"

K = TypeVar("K", bound=Hashable)
Groups = defaultdict[K, list[Object]]
"""Objects by key; none by an unknown one."""


class Evidence:
    """Objects of a cluster as they are now: a collection is listed once, by the first question.

    All questions are about one namespace; "" for any.
    """

    def __init__(self, reader: Reader, namespace: str = "") -> None:
        self._reader = Snapshot(reader)
        self._namespace = namespace
        self._found: dict[str, dict[Key, Object]] = {}

    def find(self, path: str, key: Key) -> Object | None:
        """Return an object of a collection; None if it does not exist."""
        if path not in self._found:
            self._found[path] = {key_of(item): item for item in self._list(path)}
        return self._found[path].get(key)

    @cached_property
    def inventory(self) -> Inventory:
        """Devices that nodes publish, and the claims on them."""
        return inventory_of(self._reader)

    def _list(self, path: str, **query: str) -> list[Object]:
        return self._reader.list(
            in_namespace(self._namespace, path) if self._namespace else path, **query
        )[0]

    @cached_property
    def pods(self) -> Groups[Key]:
        """Pods by RayCluster."""
        return _grouped(
            self._list(PODS), lambda pod: (pod["metadata"]["namespace"], _label(pod, _OF_CLUSTER))
        )

    @cached_property
    def warnings(self) -> Groups[tuple[str, str, str]]:
        """Warning events by kind, namespace and name of the object that they are about."""
        return _grouped(self._list(EVENTS, **_WARNINGS), _subject)

    @cached_property
    def refused_claims(self) -> dict[Key, str]:
        """Why claims of pods cannot be created, by namespace and name of the pod."""
        return {
            (event["metadata"]["namespace"], event["involvedObject"]["name"]): str(
                event.get("message")
            )
            for event in self._list(EVENTS, **_WARNINGS)
            if event.get("reason") == "FailedResourceClaimCreation"
        }

    @cached_property
    def scaling(self) -> Groups[str]:
        """The cluster autoscaler's events about pods, by namespace.

        During a stockout the scheduler only sees that there is no node; the autoscaler knows why
        none comes.
        """
        return _grouped(self._list(EVENTS, **SCALING), lambda event: event["metadata"]["namespace"])

    @cached_property
    def nodes(self) -> Groups[str]:
        """Nodes by pool."""
        return _grouped(self._reader.list(NODES)[0], lambda node: _label(node, POOL_LABEL))


def key_of(item: Object) -> Key:
    """Return the namespace and the name of an object."""
    return str(item["metadata"]["namespace"]), str(item["metadata"]["name"])


def _grouped(items: Iterable[Object], key: Callable[[Object], K]) -> Groups[K]:
    groups: Groups[K] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _label(item: Object, label: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(label, ""))


def _subject(event: Object) -> tuple[str, str, str]:
    about = event.get("involvedObject") or {}
    return str(about.get("kind")), str(event["metadata"].get("namespace")), str(about.get("name"))


GONE = (
    "it was deleted outside of Pulumi, and the state still has it; `pulumi refresh` takes note of"
    " that, and the update after it creates it again"
)
"""Reason of an object that does not exist."""


def reasons_of(evidence: Evidence, key: Key) -> list[str]:
    """Return why a RayCluster is not ready, from its pods and events; empty if it is ready."""
    cluster = evidence.find(RAY_CLUSTERS, key)
    if cluster is None:
        return [GONE]
    pods, events, scaling = (
        evidence.pods[key],
        evidence.warnings["RayCluster", *key],
        evidence.scaling[key[0]],
    )
    return reasons_not_ready(
        cluster, pods, events, scaling, _without_devices(evidence, key[0], pods)
    )


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
    waiting = [
        pod for pod in pods if pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")
    ]
    if not waiting:
        return {}
    try:
        inventory, refused = evidence.inventory, evidence.refused_claims
        nodes = {pool: evidence.nodes[pool] for pool in map(pool_of, waiting)}
    except ClusterError:
        # An engineer may not list the claims of other berths; the scheduler's message remains.
        return {}
    return {
        name: why_without_devices(
            pod, inventory, nodes[pool_of(pod)], refused.get((namespace, name), "")
        )
        for pod in waiting
        for name in [pod["metadata"]["name"]]
    }


def _reasons_of_clusters(evidence: Evidence, namespace: str, names: Iterable[str]) -> list[str]:
    return [
        f"RayCluster {name}: {reason}"
        for name in names
        for reason in reasons_of(evidence, (namespace, name))
    ]


def _warnings(evidence: Evidence, kind: str, key: Key) -> list[str]:
    return last_messages(evidence.warnings[(kind, *key)])
