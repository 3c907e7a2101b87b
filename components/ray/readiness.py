"""Waiting until RayClusters, RayJobs and RayServices are as they should be, and saying which is not and why.

The wait is the program's and not the provider's (`pulumi.com/waitFor`), since a provider can only say that a condition
was not met in time, and since one watch serves a hundred clusters.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

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
from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.condition import condition_of, pods_missing, reasons_not_ready
from berth.components.ray.workload_condition import job_condition, service_condition

Key = tuple[str, str]
"""Namespace and name of a RayCluster, RayJob or RayService."""

# Of events by which Kubernetes' controller says that it cannot make a pod's claim.
_NO_CLAIM = "FailedResourceClaimCreation"
_GONE = "it is gone"

# A watch is asked to end after this many seconds, so that deadlines and a stop are noticed.
_WATCH_SECONDS = 5
_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Standing:
    """How an object stands.

    Attributes:
        text: for people.
        done: it is as it should be, by its own status.
        hopeless: it never will be.
    """

    text: str
    done: bool
    hopeless: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Kind:
    """A kind of object that is waited for.

    Attributes:
        path: its collection.
        standing: how one stands.
        reasons: why one is not as it should be, asked of the cluster; empty where it is.
        lacks: what one lacks whose own status says that it is done, asked of the cluster; "" where it lacks nothing.
    """

    path: str
    standing: Callable[[Object], Standing]
    reasons: Callable[[ClusterApi, Key], list[str]]
    lacks: Callable[[ClusterApi, Object], str] = lambda _api, _object: ""


@dataclass
class Wait:
    """One wait for some objects of one kind.

    Attributes:
        kind: what they are.
        kubeconfig: of their cluster, as text.
        selector: a label selector that finds them all.
        deadlines: seconds to wait for each.
        report: called with one and how it stands whenever that changes, and with the reasons when it stands still.
        namespaces: those that the update keeps or makes. What the selector finds elsewhere goes at the update's end.
        put_off: called with one that waits for what such a one holds, and with the namespaces of those; it is waited for no more.
        stop: set it to end the wait early.
    """

    kind: Kind
    kubeconfig: str
    selector: str
    deadlines: Mapping[Key, float]
    report: Callable[[Key, str], None]
    namespaces: Collection[str]
    put_off: Callable[[Key, list[str]], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> dict[Key, list[str]]:
        """Wait for all.

        Returns:
            Those that are not as they should be in time, or never will be, with the reasons.

        Raises:
            ClusterError: the API server could not be asked until the last deadline.
        """
        api = ClusterApi(self.kubeconfig)
        start = time.monotonic()
        waiting = {key: start + seconds for key, seconds in self.deadlines.items()}
        seen: dict[Key, Standing] = {}
        told: dict[Key, tuple[Standing | None, list[str]]] = {}
        failed: dict[Key, list[str]] = {}
        while waiting and not self.stop.is_set():
            try:
                found, version = api.list(self.kind.path, labelSelector=self.selector)
                self._sort_out(api, found, waiting, seen)
                if not self._is_over(waiting, seen):
                    seconds = min(_WATCH_SECONDS, max(1, min(waiting.values()) - time.monotonic()))
                    for each in api.watch(self.kind.path, version, int(seconds), labelSelector=self.selector):
                        self._sort_out(api, [each], waiting, seen)
                        if self._is_over(waiting, seen) or self.stop.is_set():
                            break
            except ClusterError:
                if time.monotonic() >= max(waiting.values()):
                    raise
                self.stop.wait(_RETRY_SECONDS)
            self._explain(api, waiting, seen, told)
            self._put_off(api, waiting, told)
            for key in [
                key for key, deadline in waiting.items() if time.monotonic() >= deadline or _hopeless(key, seen)
            ]:
                del waiting[key]
                failed[key] = self._reasons_or_why_not(api, key)
        # What got ready while the reasons were looked up has none.
        return {key: reasons for key, reasons in failed.items() if reasons}

    @staticmethod
    def _is_over(waiting: Collection[Key], seen: Mapping[Key, Standing]) -> bool:
        return not waiting or any(_hopeless(key, seen) for key in waiting)

    def _explain(
        self,
        api: ClusterApi,
        waiting: Iterable[Key],
        seen: Mapping[Key, Standing],
        told: dict[Key, tuple[Standing | None, list[str]]],
    ) -> None:
        """Say early why one stands still: nobody should have to wait for the deadline to see a misfit."""
        for key in waiting:
            standing, reasons = told.get(key, (None, []))
            if standing == seen.get(key):
                now = self._reasons_or_why_not(api, key)
                if now and now != reasons:
                    self.report(key, f"{standing}: {'; '.join(now)}" if standing else "; ".join(now))
                told[key] = (standing, now)
            else:
                # It moved since the last look: one more round before it counts as standing still.
                told[key] = (seen.get(key), reasons)

    def _put_off(
        self, api: ClusterApi, waiting: dict[Key, float], told: Mapping[Key, tuple[Standing | None, list[str]]]
    ) -> None:
        """Wait no more for those that cannot start before something goes: Pulumi deletes last, once every wait is over."""
        if not any(reasons for key, (_, reasons) in told.items() if key in waiting):
            return
        try:
            pods = api.list(PODS, labelSelector=self.selector)[0]
        except ClusterError:
            return  # who may not list them waits to the deadline
        going, held_up = defaultdict(set), defaultdict(set)
        for pod in pods:
            where = _namespace(pod)
            if has_a_node(pod) and where not in self.namespaces:
                going[_pool(pod)].add(where)
            elif finds_no_node(pod):
                held_up[where].add(_pool(pod))
        for key in list(waiting):
            if before := sorted({where for pool in held_up[key[0]] for where in going[pool]}):
                del waiting[key]
                self.put_off(key, before)

    def _sort_out(
        self, api: ClusterApi, found: Iterable[Object], waiting: dict[Key, float], seen: dict[Key, Standing]
    ) -> None:
        for each in found:
            key = (each["metadata"]["namespace"], each["metadata"]["name"])
            if key not in waiting:
                continue
            standing = self.kind.standing(each)
            if standing != seen.get(key):
                seen[key] = standing
                self.report(key, str(standing))
            if standing.done and not self.kind.lacks(api, each):
                del waiting[key]

    def _reasons_or_why_not(self, api: ClusterApi, key: Key) -> list[str]:
        try:
            return self.kind.reasons(api, key)
        except ClusterError as error:
            return [str(error)]


def _namespace(item: Object) -> str:
    return str(item["metadata"]["namespace"])


def _pool(pod: Object) -> str:
    """The node pool whose nodes a pod takes, "" for any."""
    return str((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, ""))


def _hopeless(key: Key, seen: Mapping[Key, Standing]) -> bool:
    return key in seen and seen[key].hopeless


def reasons_of(api: ClusterApi, key: Key) -> list[str]:
    """Why a RayCluster is not ready, from its pods and events; empty if it is ready by now.

    Raises:
        ClusterError: the API server can't be asked.
    """
    namespace, name = key
    cluster = _found(api, RAY_CLUSTERS, key)
    if cluster is None:
        return [_GONE]
    pods = _pods(api, key)
    events = _warning_events(api, namespace, "RayCluster", name)
    # Where machines have run out, the scheduler only sees that there is no node; the autoscaler says why none comes.
    said, _ = api.list(within(namespace, EVENTS), fieldSelector="involvedObject.kind=Pod,source=cluster-autoscaler")
    return reasons_not_ready(cluster, pods, events, said, _without_devices(api, namespace, pods))


def _pods(api: ClusterApi, key: Key) -> list[Object]:
    namespace, name = key
    return api.list(within(namespace, PODS), labelSelector=f"ray.io/cluster={name}")[0]


def _without_devices(api: ClusterApi, namespace: str, pods: Iterable[Object]) -> dict[str, str]:
    """Why pods that wait have not got the devices that they claim, by name of the pod."""
    waiting = [pod for pod in pods if pod["spec"].get("resourceClaims") and not pod["spec"].get("nodeName")]
    if not waiting:
        return {}
    try:
        seen = inventory_of(api)
        pools = {_pool(pod) for pod in waiting}
        nodes = {pool: api.list(NODES, labelSelector=f"{POOL_LABEL}={pool}")[0] for pool in pools}
        refusals, _ = api.list(within(namespace, EVENTS), fieldSelector=f"reason={_NO_CLAIM}")
    except ClusterError:
        # Others' claims are not for everybody to see; the scheduler's own words are left then.
        return {}
    told = {each["involvedObject"]["name"]: str(each.get("message")) for each in refusals}
    return {
        pod["metadata"]["name"]: why_without_devices(
            pod,
            seen,
            nodes[_pool(pod)],
            refused=told.get(pod["metadata"]["name"], ""),
        )
        for pod in waiting
    }


def reasons_of_job(api: ClusterApi, key: Key, *, until_its_end: bool = False) -> list[str]:
    """Why a RayJob does not run, or has not ended well; empty if it has by now.

    Args:
        api: the cluster.
        key: namespace and name of the RayJob.
        until_its_end: it should have ended by now.

    Raises:
        ClusterError: the API server can't be asked.
    """
    namespace, name = key
    job = _found(api, RAY_JOBS, key)
    if job is None:
        return [_GONE]
    condition = job_condition(job)
    if condition.succeeded or (condition.running and not until_its_end):
        return []
    reasons = [condition.told] if condition.told else []
    if not condition.failed and not condition.running:
        reasons += _reasons_of_clusters(api, namespace, [condition.ray_cluster] if condition.ray_cluster else [])
        # The pod that submits it is that of a Job of its name.
        reasons = reasons or _warnings(api, namespace, "Job", name) or _warnings(api, namespace, "RayJob", name)
    return reasons or [str(condition)]


def reasons_of_service(api: ClusterApi, key: Key) -> list[str]:
    """Why a RayService is not ready; empty if it is by now.

    Raises:
        ClusterError: the API server can't be asked.
    """
    namespace, name = key
    service = _found(api, RAY_SERVICES, key)
    if service is None:
        return [_GONE]
    condition = service_condition(service)
    if condition.ready:
        return []
    reasons = [*condition.told, *_reasons_of_clusters(api, namespace, condition.ray_clusters)]
    reasons = reasons or _warnings(api, namespace, "RayService", name)
    if not reasons and condition.seen and condition.ray_clusters and not condition.running:
        reasons = ["its RayCluster is ready, and Ray Serve has not started its applications yet"]
    return reasons or [str(condition)]


def _reasons_of_clusters(api: ClusterApi, namespace: str, names: Iterable[str]) -> list[str]:
    """Why the RayClusters that KubeRay made for something are not ready."""
    return [f"RayCluster {name}: {reason}" for name in names for reason in reasons_of(api, (namespace, name))]


def _warnings(api: ClusterApi, namespace: str, kind: str, name: str) -> list[str]:
    """The last distinct warnings about an object."""
    events = _warning_events(api, namespace, kind, name)
    return list(dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events))[-3:]


def _warning_events(api: ClusterApi, namespace: str, kind: str, name: str) -> list[Object]:
    about = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
    return api.list(within(namespace, EVENTS), fieldSelector=about)[0]


def _found(api: ClusterApi, path: str, key: Key) -> Object | None:
    """One object of a collection; None where there is no such thing."""
    namespace, name = key
    found, _ = api.list(within(namespace, path), fieldSelector=f"metadata.name={name}")
    return found[0] if found else None


def _cluster_standing(cluster: Object) -> Standing:
    condition = condition_of(cluster)
    return Standing(str(condition), condition.ready)


def _cluster_lacks(api: ClusterApi, cluster: Object) -> str:
    key = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
    return pods_missing(cluster, _pods(api, key))


def _running(job: Object) -> Standing:
    condition = job_condition(job)
    return Standing(str(condition), condition.running, condition.failed)


def _succeeded(job: Object) -> Standing:
    condition = job_condition(job)
    return Standing(str(condition), condition.succeeded, condition.failed)


def _service_standing(service: Object) -> Standing:
    condition = service_condition(service)
    return Standing(str(condition), condition.ready)


RAY_CLUSTER = Kind(RAY_CLUSTERS, _cluster_standing, reasons_of, _cluster_lacks)
"""A RayCluster that is to be ready."""

RUNNING_JOB = Kind(RAY_JOBS, _running, reasons_of_job)
"""A RayJob that is to run, or to have ended well."""

SUCCEEDED_JOB = Kind(RAY_JOBS, _succeeded, lambda api, key: reasons_of_job(api, key, until_its_end=True))
"""A RayJob that is to have ended well."""

RAY_SERVICE = Kind(RAY_SERVICES, _service_standing, reasons_of_service)
"""A RayService whose newest edit is to serve."""
