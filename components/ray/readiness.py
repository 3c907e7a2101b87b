"""Wait until RayClusters, RayJobs and RayServices are ready.

The program waits, not the provider (`pulumi.com/waitFor`): a provider can only report that a
condition was not met in time, and one watch of the program serves a hundred clusters.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from berth.components.cluster.api import (
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    ClusterError,
    Object,
    within,
)
from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.ray.condition import condition_of, pods_missing
from berth.components.ray.reasons import Key, pods_of, pool_of, reasons_of, reasons_of_job, reasons_of_service
from berth.components.ray.workload_condition import job_condition, service_condition

# A watch ends after this many seconds, so that deadlines and a stop are noticed.
_WATCH_SECONDS = 5
_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Standing:
    """State of an object on its way to the goal of a wait.

    Attributes:
        text: the state in words.
        done: the object's status says that the goal is reached.
        hopeless: the goal can never be reached.
    """

    text: str
    done: bool
    hopeless: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Kind:
    """Kind of object, with the goal of a wait for it.

    Attributes:
        path: path of the collection.
        standing: returns the state of an object.
        reasons: returns why an object has not reached the goal; empty if it has.
        lacks: returns what an object lacks although its status is done; "" if it lacks nothing.
    """

    path: str
    standing: Callable[[Object], Standing]
    reasons: Callable[[ClusterApi, Key], list[str]]
    lacks: Callable[[ClusterApi, Object], str] = lambda _api, _object: ""


@dataclass
class Wait:
    """Wait for some objects of one kind.

    Attributes:
        kind: kind of the objects.
        kubeconfig: kubeconfig of their cluster, as text.
        selector: label selector of the objects and of their namespaces. Users may remove the label
            of an object, but not of a namespace.
        deadlines: seconds to wait by object.
        report: called with an object and its state after each change, and with the reasons when it
            is stuck.
        namespaces: namespaces that stay after the update; it deletes what the selector finds in
            others.
        put_off: called with an object that waits for pods in namespaces to be deleted; its wait is
            over.
        stop: event that ends the wait early.
    """

    kind: Kind
    kubeconfig: str
    selector: str
    deadlines: Mapping[Key, float]
    report: Callable[[Key, str], None]
    namespaces: Collection[str]
    put_off: Callable[[Key, list[str]], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _standings: dict[Key, Standing] = field(default_factory=dict, init=False)
    _explained: dict[Key, tuple[Standing | None, list[str]]] = field(default_factory=dict, init=False)

    def run(self) -> dict[Key, list[str]]:
        """Wait for all objects.

        Returns:
            Reasons by object that has not reached the goal in time, or never will.

        Raises:
            ClusterError: the API server did not answer until the last deadline.
        """
        api = ClusterApi(self.kubeconfig)
        start = time.monotonic()
        waiting = {key: start + seconds for key, seconds in self.deadlines.items()}
        failed: dict[Key, list[str]] = {}
        while waiting and not self.stop.is_set():
            try:
                self._watch(api, waiting)
            except ClusterError:
                if time.monotonic() >= max(waiting.values()):
                    raise
                self.stop.wait(_RETRY_SECONDS)
            self._explain(api, waiting)
            self._put_off(api, waiting)
            over = [key for key, deadline in waiting.items() if time.monotonic() >= deadline or self._hopeless(key)]
            for key in over:
                del waiting[key]
                failed[key] = self._reasons(api, key)
        # An object that got ready during the look-up has no reasons.
        return {key: reasons for key, reasons in failed.items() if reasons}

    def _watch(self, api: ClusterApi, waiting: dict[Key, float]) -> None:
        """List the objects, and watch them until one is done for or the watch ends."""
        found, version = api.list(self.kind.path, labelSelector=self.selector)
        self._update(api, [*found, *self._unlabeled(api, found, waiting)], waiting)
        if self._is_over(waiting):
            return
        seconds = min(_WATCH_SECONDS, max(1, min(waiting.values()) - time.monotonic()))
        for changed in api.watch(self.kind.path, version, int(seconds), labelSelector=self.selector):
            self._update(api, [changed], waiting)
            if self._is_over(waiting) or self.stop.is_set():
                return

    def _unlabeled(self, api: ClusterApi, found: Iterable[Object], waiting: Iterable[Key]) -> list[Object]:
        """Return the objects that the selector misses: somebody took their label off."""
        listed = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found}
        missing = [key for key in waiting if key not in listed]
        path = self.kind.path
        # An engineer's own stack waits in one namespace, whose path the kind has then.
        answers = [
            api.get(f"{path if '/namespaces/' in path else within(namespace, path)}/{name}")
            for namespace, name in missing
        ]
        return [item for item in answers if item]

    def _update(self, api: ClusterApi, found: Iterable[Object], waiting: dict[Key, float]) -> None:
        for item in found:
            key = (item["metadata"]["namespace"], item["metadata"]["name"])
            if key not in waiting:
                continue
            standing = self.kind.standing(item)
            if standing != self._standings.get(key):
                self._standings[key] = standing
                self.report(key, str(standing))
            if standing.done and not self.kind.lacks(api, item):
                del waiting[key]

    def _hopeless(self, key: Key) -> bool:
        return key in self._standings and self._standings[key].hopeless

    def _is_over(self, waiting: Collection[Key]) -> bool:
        return not waiting or any(map(self._hopeless, waiting))

    def _explain(self, api: ClusterApi, waiting: Iterable[Key]) -> None:
        """Report the reasons of a stuck object early, before its deadline."""
        for key in waiting:
            standing, reasons = self._explained.get(key, (None, []))
            if standing == self._standings.get(key):
                now = self._reasons(api, key)
                if now and now != reasons:
                    self.report(key, f"{standing}: {'; '.join(now)}" if standing else "; ".join(now))
                self._explained[key] = (standing, now)
            else:
                # The state changed since the last look: one more round before the object counts as
                # stuck.
                self._explained[key] = (self._standings.get(key), reasons)

    def _put_off(self, api: ClusterApi, waiting: dict[Key, float]) -> None:
        """End the wait for objects that need the room of others: Pulumi deletes those later."""
        if not any(reasons for key, (_, reasons) in self._explained.items() if key in waiting):
            return
        try:
            pods = api.list(PODS, labelSelector=self.selector)[0]
            ours = {space["metadata"]["name"] for space in api.list(NAMESPACES, labelSelector=self.selector)[0]}
        except ClusterError:
            return  # An engineer who may not list the pods waits to the deadline.
        going, held_up = defaultdict(set), defaultdict(set)
        for pod in pods:
            namespace = str(pod["metadata"]["namespace"])
            if has_a_node(pod) and namespace in ours - {*self.namespaces}:
                going[pool_of(pod)].add(namespace)
            elif finds_no_node(pod):
                held_up[namespace].add(pool_of(pod))
        for key in list(waiting):
            if before := sorted({namespace for pool in held_up[key[0]] for namespace in going[pool]}):
                del waiting[key]
                self.put_off(key, before)

    def _reasons(self, api: ClusterApi, key: Key) -> list[str]:
        try:
            return self.kind.reasons(api, key)
        except ClusterError as error:
            return [str(error)]


def _cluster_standing(cluster: Object) -> Standing:
    condition = condition_of(cluster)
    return Standing(str(condition), condition.ready)


def _cluster_lacks(api: ClusterApi, cluster: Object) -> str:
    return pods_missing(cluster, pods_of(api, (cluster["metadata"]["namespace"], cluster["metadata"]["name"])))


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
"""RayCluster that should be ready."""

RUNNING_JOB = Kind(RAY_JOBS, _running, reasons_of_job)
"""RayJob that should run, or have succeeded."""

SUCCEEDED_JOB = Kind(RAY_JOBS, _succeeded, lambda api, key: reasons_of_job(api, key, until_its_end=True))
"""RayJob that should have succeeded."""

RAY_SERVICE = Kind(RAY_SERVICES, _service_standing, reasons_of_service)
"""RayService whose newest edit should serve."""
