"""Wait until RayClusters, RayJobs and RayServices are ready.

The program waits, not the provider (`pulumi.com/waitFor`): a provider can only report that a
condition was not met in time. The program lists the objects once and watches them, whatever their
number; pods and events, which explain why some are late, too.
"""

from __future__ import annotations

import contextlib
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
from berth.components.cluster.mirror import Mirror
from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.ray.condition import condition_of, pods_missing
from berth.components.ray.evidence import Evidence, Key, key_of
from berth.components.ray.reasons import (
    is_simulated_job,
    is_simulated_service,
    pool_of,
    reasons_of,
    reasons_of_job,
    reasons_of_service,
)
from berth.components.ray.workload_condition import job_condition, service_condition

# Deadlines and a stop are noticed within this time.
_PAUSE_SECONDS = 1.0
# Changes within this time are looked at together.
_SETTLE_SECONDS = 0.1
_ROUND_SECONDS = 5.0


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
            None: objects of this kind never lack anything then.
        simulated: returns whether an object never starts, since no container runs on its nodes.
    """

    path: str
    standing: Callable[[Object], Standing]
    reasons: Callable[[Evidence, Key], list[str]]
    lacks: Callable[[Evidence, Object], str] | None = None
    simulated: Callable[[Evidence, Object], bool] | None = None


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
            is stuck; not for one that is done when the wait begins.
        namespaces: namespaces that stay after the update; it deletes what the selector finds in
            others.
        put_off: called with an object whose wait is over, and the namespaces for whose pods' end it
            waits; with none if its pods are on simulated nodes, where it never starts.
        namespace: the only namespace in which objects may be listed; "" for all namespaces.
        stop: event that ends the wait early.
    """

    kind: Kind
    kubeconfig: str
    selector: str
    deadlines: Mapping[Key, float]
    report: Callable[[Key, str], None]
    namespaces: Collection[str]
    put_off: Callable[[Key, list[str]], None]
    namespace: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    _seen: dict[Key, Object] = field(default_factory=dict, init=False)
    _standings: dict[Key, Standing] = field(default_factory=dict, init=False)
    _explained: dict[Key, tuple[Standing | None, list[str]]] = field(default_factory=dict, init=False)
    _unlabeled: list[Object] = field(default_factory=list, init=False)
    _gone: set[Key] = field(default_factory=set, init=False)
    _last: Mirror | None = field(default=None, init=False)

    def run(self) -> dict[Key, list[str]]:
        """Wait for all objects.

        Returns:
            Reasons by object that has not reached the goal in time, or never will.

        Raises:
            ClusterError: the API server did not answer until the last deadline.
        """
        api = ClusterApi(self.kubeconfig)
        mirror = Mirror(api)
        try:
            failed = self._wait(api, mirror)
        finally:
            mirror.stop()
            self._forget()
        # An object that got ready during the look-up has no reasons.
        return {key: reasons for key, reasons in failed.items() if reasons}

    def _wait(self, api: ClusterApi, mirror: Mirror) -> dict[Key, list[str]]:
        now = next_round = time.monotonic()
        waiting = {key: now + seconds for key, seconds in self.deadlines.items()}
        failed: dict[Key, list[str]] = {}
        while waiting and not self.stop.is_set():
            is_round = time.monotonic() >= next_round
            try:
                self._update(api, mirror, waiting, look_up=is_round)
            except ClusterError:
                if time.monotonic() >= max(waiting.values()):
                    raise
            if is_round:
                next_round = time.monotonic() + _ROUND_SECONDS
                self._leave_simulated(mirror, waiting)
                self._explain(mirror, waiting)
                self._put_off(mirror, waiting)
            over = [key for key, deadline in waiting.items() if time.monotonic() >= deadline or self._hopeless(key)]
            failed |= self._reasons(Evidence(api, self.namespace), over)
            for key in over:
                del waiting[key]
            if waiting:
                mirror.changed.wait(_PAUSE_SECONDS)
                self.stop.wait(_SETTLE_SECONDS)
                mirror.changed.clear()
        return failed

    @property
    def _path(self) -> str:
        return within(self.namespace, self.kind.path) if self.namespace else self.kind.path

    def _update(self, api: ClusterApi, mirror: Mirror, waiting: dict[Key, float], *, look_up: bool) -> None:
        """Take the objects over as they are now; end the wait for what is done."""
        found, _ = mirror.list(self._path, labelSelector=self.selector)
        if look_up:
            self._unlabeled = self._without_label(api, found, waiting)
        for item in (*found, *self._unlabeled):
            key = key_of(item)
            if key not in waiting or self._seen.get(key) is item:
                continue
            self._seen[key], standing = item, self.kind.standing(item)
            if standing != self._standings.get(key):
                if key in self._standings or not standing.done:
                    self.report(key, str(standing))
                self._standings[key] = standing
            if standing.done and self.kind.lacks is None:
                del waiting[key]
        if not all(key in self._standings and self._standings[key].done for key in waiting):
            self._forget()
        elif waiting and self.kind.lacks is not None:
            # Pods that were listed before the statuses may be those that an edit has deleted since.
            self._last = self._last or Mirror(api, mirror.changed)
            evidence = Evidence(self._last, self.namespace)
            for key in [key for key in waiting if not self.kind.lacks(evidence, self._seen[key])]:
                del waiting[key]

    def _forget(self) -> None:
        """End the watch of the pods that the last statuses are compared with."""
        if self._last is not None:
            self._last.stop()
            self._last = None

    def _without_label(self, api: ClusterApi, found: Iterable[Object], waiting: Iterable[Key]) -> list[Object]:
        """Return the objects that the selector misses: somebody took their label off."""
        listed = {key_of(item) for item in found}
        missing = [key for key in waiting if key not in listed]
        answers = {key: api.get(f"{within(key[0], self.kind.path)}/{key[1]}") for key in missing}
        self._gone = {key for key, item in answers.items() if item is None}
        return [item for item in answers.values() if item]

    def _hopeless(self, key: Key) -> bool:
        """Return whether the goal can't be reached: Pulumi has created everything before a wait."""
        return key in self._gone or (key in self._standings and self._standings[key].hopeless)

    def _explain(self, mirror: Mirror, waiting: dict[Key, float]) -> None:
        """Report the reasons of stuck objects early, before their deadlines.

        The wait for an object that is done, and lacks no pods a round later, is over: what its
        users do while others are late is their business.
        """
        stuck = []
        for key in waiting:
            standing, reasons = self._explained.get(key, (None, []))
            if key in self._explained and standing == self._standings.get(key):
                stuck.append(key)
            else:
                # The state changed since the last look: one more round before the object counts as
                # stuck.
                self._explained[key] = (self._standings.get(key), reasons)
        for key, now in self._reasons(Evidence(mirror, self.namespace), stuck).items():
            standing, reasons = self._explained[key]
            if now and now != reasons:
                self.report(key, f"{standing}: {'; '.join(now)}" if standing else "; ".join(now))
            self._explained[key] = (standing, now)
            if standing and standing.done and not now:
                del waiting[key]

    def _leave_simulated(self, mirror: Mirror, waiting: dict[Key, float]) -> None:
        """End the wait for objects that never start, since simulated nodes run no Ray."""
        if self.kind.simulated is None:
            return
        evidence = Evidence(mirror, self.namespace)
        # Without the right to list pods, an engineer waits to the deadline.
        with contextlib.suppress(ClusterError):
            for key in [key for key in waiting if key in self._seen]:
                if self.kind.simulated(evidence, self._seen[key]):
                    del waiting[key]
                    self.put_off(key, [])

    def _put_off(self, mirror: Mirror, waiting: dict[Key, float]) -> None:
        """End the wait for objects that need the room of others: Pulumi deletes those later."""
        if not any(reasons for key, (_, reasons) in self._explained.items() if key in waiting):
            return
        # The pods of all namespaces are there already, if they explain what is stuck.
        query = {"labelSelector": self.selector} if self.namespace else {}
        try:
            pods = mirror.list(PODS, **query)[0]
            ours = {space["metadata"]["name"] for space in mirror.list(NAMESPACES, labelSelector=self.selector)[0]}
        except ClusterError:
            return  # An engineer who may not list the pods waits to the deadline.
        leaving = ours - {*self.namespaces}
        going, held_up = defaultdict(set), defaultdict(set)
        for pod in pods:
            namespace = str(pod["metadata"]["namespace"])
            if has_a_node(pod) and namespace in leaving:
                going[pool_of(pod)].add(namespace)
            elif finds_no_node(pod):
                held_up[namespace].add(pool_of(pod))
        for key in list(waiting):
            if before := sorted({namespace for pool in held_up[key[0]] for namespace in going[pool]}):
                del waiting[key]
                self.put_off(key, before)

    def _reasons(self, evidence: Evidence, keys: Iterable[Key]) -> dict[Key, list[str]]:
        """Return the reasons by object; a server that does not answer is asked once for all."""
        found: dict[Key, list[str]] = {}
        failure = ""
        for key in keys:
            try:
                found[key] = [failure] if failure else self.kind.reasons(evidence, key)
            except ClusterError as error:
                failure = str(error)
                found[key] = [failure]
        return found


def _cluster_standing(cluster: Object) -> Standing:
    condition = condition_of(cluster)
    return Standing(str(condition), condition.ready)


def _cluster_lacks(evidence: Evidence, cluster: Object) -> str:
    return pods_missing(cluster, evidence.pods(key_of(cluster)))


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

RUNNING_JOB = Kind(RAY_JOBS, _running, reasons_of_job, simulated=is_simulated_job)
"""RayJob that should run, or have succeeded."""

SUCCEEDED_JOB = Kind(
    RAY_JOBS,
    _succeeded,
    lambda evidence, key: reasons_of_job(evidence, key, until_its_end=True),
    simulated=is_simulated_job,
)
"""RayJob that should have succeeded."""

RAY_SERVICE = Kind(RAY_SERVICES, _service_standing, reasons_of_service, simulated=is_simulated_service)
"""RayService whose newest edit should serve."""
