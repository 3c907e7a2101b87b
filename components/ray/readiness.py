"""Waiting until RayClusters are ready, and saying which is not and why.

The wait is the program's and not the provider's (`pulumi.com/waitFor`), since a provider can only say that a condition
was not met in time, and since one watch serves a hundred clusters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from components.cluster_api import EVENTS, NODES, PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object, within
from components.device_inventory import inventory_of
from components.devices import why_without_devices
from components.placement import POOL_LABEL
from components.ray.condition import Condition, condition_of, pods_missing, reasons_not_ready

Key = tuple[str, str]
"""Namespace and name of a RayCluster."""

# Of events by which Kubernetes' controller says that it cannot make a pod's claim.
_NO_CLAIM = "FailedResourceClaimCreation"

# A watch is asked to end after this many seconds, so that deadlines and a stop are noticed.
_WATCH_SECONDS = 5
_RETRY_SECONDS = 1.0


@dataclass
class Wait:
    """One wait for some RayClusters.

    Attributes:
        kubeconfig: of their cluster, as text.
        selector: a label selector that finds them all.
        deadlines: seconds to wait for each.
        report: called with a cluster and how it stands whenever that changes, and with the reasons when it stands still.
        stop: set it to end the wait early.
    """

    kubeconfig: str
    selector: str
    deadlines: Mapping[Key, float]
    report: Callable[[Key, str], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> dict[Key, list[str]]:
        """Wait for all.

        Returns:
            Those that are not ready in time, with the reasons.

        Raises:
            ClusterError: the API server could not be asked until the last deadline.
        """
        api = ClusterApi(self.kubeconfig)
        start = time.monotonic()
        waiting = {key: start + seconds for key, seconds in self.deadlines.items()}
        seen: dict[Key, Condition] = {}
        told: dict[Key, tuple[Condition | None, list[str]]] = {}
        failed: dict[Key, list[str]] = {}
        while waiting and not self.stop.is_set():
            try:
                clusters, version = api.list(RAY_CLUSTERS, labelSelector=self.selector)
                self._sort_out(api, clusters, waiting, seen)
                if waiting:
                    seconds = min(_WATCH_SECONDS, max(1, min(waiting.values()) - time.monotonic()))
                    for cluster in api.watch(RAY_CLUSTERS, version, int(seconds), labelSelector=self.selector):
                        self._sort_out(api, [cluster], waiting, seen)
                        if not waiting or self.stop.is_set():
                            break
            except ClusterError:
                if time.monotonic() >= max(waiting.values()):
                    raise
                self.stop.wait(_RETRY_SECONDS)
            self._explain(api, waiting, seen, told)
            for key in [key for key, deadline in waiting.items() if time.monotonic() >= deadline]:
                del waiting[key]
                failed[key] = _reasons_or_why_not(api, key)
        # What got ready while the reasons were looked up has none.
        return {key: reasons for key, reasons in failed.items() if reasons}

    def _explain(
        self,
        api: ClusterApi,
        waiting: Iterable[Key],
        seen: Mapping[Key, Condition],
        told: dict[Key, tuple[Condition | None, list[str]]],
    ) -> None:
        """Say early why a cluster stands still: nobody should have to wait for the deadline to see a misfit."""
        for key in waiting:
            condition, reasons = told.get(key, (None, []))
            if condition == seen.get(key):
                now = _reasons_or_why_not(api, key)
                if now and now != reasons:
                    self.report(key, f"{condition}: {'; '.join(now)}" if condition else "; ".join(now))
                told[key] = (condition, now)
            else:
                # It moved since the last look: one more round before it counts as standing still.
                told[key] = (seen.get(key), reasons)

    def _sort_out(
        self, api: ClusterApi, clusters: Iterable[Object], waiting: dict[Key, float], seen: dict[Key, Condition]
    ) -> None:
        for cluster in clusters:
            key = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
            if key not in waiting:
                continue
            condition = condition_of(cluster)
            if condition != seen.get(key):
                seen[key] = condition
                self.report(key, str(condition))
            if condition.ready and not pods_missing(cluster, _pods(api, key)):
                del waiting[key]


def _reasons_or_why_not(api: ClusterApi, key: Key) -> list[str]:
    try:
        return reasons_of(api, key)
    except ClusterError as error:
        return [str(error)]


def reasons_of(api: ClusterApi, key: Key) -> list[str]:
    """Why a RayCluster is not ready, from its pods and events; empty if it is ready by now.

    Raises:
        ClusterError: the API server can't be asked.
    """
    namespace, name = key
    clusters, _ = api.list(within(namespace, RAY_CLUSTERS), fieldSelector=f"metadata.name={name}")
    if not clusters:
        return ["it is gone"]
    pods = _pods(api, key)
    about = f"involvedObject.kind=RayCluster,involvedObject.name={name},type=Warning"
    events, _ = api.list(within(namespace, EVENTS), fieldSelector=about)
    # Where machines have run out, the scheduler only sees that there is no node; the autoscaler says why none comes.
    said, _ = api.list(within(namespace, EVENTS), fieldSelector="involvedObject.kind=Pod,source=cluster-autoscaler")
    return reasons_not_ready(clusters[0], pods, events, said, _without_devices(api, namespace, pods))


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
        pools = {(pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, "") for pod in waiting}
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
            nodes[(pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, "")],
            refused=told.get(pod["metadata"]["name"], ""),
        )
        for pod in waiting
    }
