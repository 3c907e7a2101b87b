"""Wait until RayClusters, RayJobs and RayServices are ready.

The program waits, not the provider (`pulumi.com/waitFor`): a provider can only report that a
condition was not met in time. The program lists the objects once and watches them, whatever their
number; pods and events, which explain why some are late, too.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from berth.components.cluster.api import (
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    ClusterError,
    Object,
    in_namespace,
    unreachable,
)
from berth.components.cluster.mirror import Mirror
from berth.components.cluster.pods import finds_no_node, has_a_node
from berth.components.core.owner import STACK_LABEL
from berth.components.programs.lifetimes import parse_duration
from berth.components.ray.conditions.cluster import ClusterCondition, condition_of, pods_missing
from berth.components.ray.conditions.job import job_condition
from berth.components.ray.conditions.service import ServiceCondition, service_condition
from berth.components.ray.reasons import (
    GONE,
    Evidence,
    Key,
    key_of,
    pool_of,
    reasons_of,
    reasons_of_job,
    reasons_of_service,
)

Kind = Literal["RayCluster", "RayService", "RayJob"]
Until = Literal["ready", "running", "succeeded"]

# Deadlines and a stop are noticed within this time.
_PAUSE_SECONDS = 1.0
# Changes within this time are looked at together.
_SETTLE_SECONDS = 0.1
_ROUND_SECONDS = 5.0

_MISSED: dict[Until, str] = {
    "ready": "is not ready after {}",
    "running": "does not run (waited for {} at most)",
    "succeeded": "has not succeeded (waited for {} at most)",
}


@dataclass(frozen=True)
class Standing:
    """State of an object on its way to the goal of a wait."""

    text: str
    done: bool
    """The object's status says that the goal is reached."""
    hopeless: bool = False
    """The goal can never be reached."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Goal:
    """Goal of a wait for an object of one kind."""

    path: str
    standing: Callable[[Object], Standing]
    """Returns the state of an object."""
    reasons: Callable[[Evidence, Key], list[str]]
    """Returns why an object has not reached the goal; empty if it has."""


@dataclass(frozen=True)
class Awaited:
    """Resource that an update waits for, until a state, for a time as people write it: `10m`."""

    kind: Kind
    until: Until
    key: Key
    timeout: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(self.key)}"

    @property
    def goal(self) -> Goal:
        """Goal of the wait."""
        return GOALS[self.kind, self.until]

    def problem(self, reasons: Sequence[str]) -> str:
        """Return the error text: the resource is not ready, with the reasons."""
        missed = "does not exist" if GONE in reasons else _MISSED[self.until].format(self.timeout)
        return f"{self} {missed}: {'; '.join(reasons)}"

    def put_off(self, stack: str, going: Sequence[str]) -> str:
        """Return a warning that an update does not wait while namespaces go."""
        return (
            f"{self} is not waited for: its pods find no node while those of {', '.join(going)} are"
            f" there, which go at the end of this update; `berth status -s {stack}` says when it is"
            " ready"
        )


@dataclass
class Wait:
    """Wait for resources of some berths of one stack."""

    stack: str
    """The stack. Its label selects the resources and their namespaces. Users may remove the label
    of a resource, but not of a namespace."""
    kubeconfig: str
    """Kubeconfig of the cluster, as text."""
    awaited: Sequence[Awaited]
    namespaces: Collection[str]
    """Namespaces that stay after the update; it deletes what the selector finds in others."""
    report: Callable[[Awaited, str], None]
    """Called with a resource and its state after each change, and with the reasons when it is
    stuck; not for one that is done when the wait begins."""
    put_off: Callable[[Awaited, Sequence[str]], None]
    """Called with a resource whose wait is over, and the namespaces for whose end it waits."""
    once: bool = False
    """Look once, and return whatever is not done then, without reasons."""
    stop: threading.Event = field(default_factory=threading.Event)
    _seen: dict[Awaited, Object] = field(default_factory=dict, init=False)
    _standings: dict[Awaited, Standing] = field(default_factory=dict, init=False)
    _explained: dict[Awaited, tuple[Standing | None, list[str]]] = field(
        default_factory=dict, init=False
    )
    _unlabeled: dict[Awaited, Object] = field(default_factory=dict, init=False)
    _gone: set[Awaited] = field(default_factory=set, init=False)
    _last: Mirror | None = field(default=None, init=False)

    def run(self) -> dict[Awaited, list[str]]:
        """Wait for all resources.

        Returns:
            Reasons by resource that has not reached the goal in time, or never will.

        Raises:
            ClusterError: the API server does not answer at all, or not until the last deadline.
        """
        # A wait goes on while a server is away, such as for its upgrade, but not begin without it.
        if error := unreachable(self.kubeconfig):
            raise error.of_stack(self.stack)
        api = ClusterApi(self.kubeconfig)
        mirror = Mirror(api)
        try:
            failed = self._wait(api, mirror)
        finally:
            mirror.stop()
            self._forget()
        # A resource that got ready during the look-up has no reasons.
        return {resource: reasons for resource, reasons in failed.items() if reasons or self.once}

    def _wait(self, api: ClusterApi, mirror: Mirror) -> dict[Awaited, list[str]]:
        now = next_round = time.monotonic()
        waiting = {
            resource: now + (0 if self.once else parse_duration(resource.timeout))
            for resource in self.awaited
        }
        failed: dict[Awaited, list[str]] = {}
        while waiting and not self.stop.is_set():
            is_round = time.monotonic() >= next_round
            try:
                self._update(api, mirror, waiting, look_up=is_round)
            except ClusterError:
                if time.monotonic() >= max(waiting.values()):
                    raise
            if self.once:
                return {resource: [] for resource in waiting}
            if is_round:
                next_round = time.monotonic() + _ROUND_SECONDS
                self._explain(mirror, waiting)
                self._put_off(mirror, waiting)
            over = [
                resource
                for resource, deadline in waiting.items()
                if time.monotonic() >= deadline or self._is_hopeless(resource)
            ]
            failed |= self._reasons(Evidence(api, self._namespace), over)
            for resource in over:
                del waiting[resource]
            if waiting:
                mirror.changed.wait(_PAUSE_SECONDS)
                self.stop.wait(_SETTLE_SECONDS)
                mirror.changed.clear()
        return failed

    @property
    def _namespace(self) -> str:
        """The only namespace with resources, beyond which an engineer may list nothing; else ""."""
        namespaces = {namespace for namespace, _ in (resource.key for resource in self.awaited)}
        return namespaces.pop() if len(namespaces) == 1 else ""

    @property
    def _of_stack(self) -> dict[str, str]:
        return {"labelSelector": f"{STACK_LABEL}={self.stack}"}

    def _update(
        self, api: ClusterApi, mirror: Mirror, waiting: dict[Awaited, float], *, look_up: bool
    ) -> None:
        """Take the objects over as they are now; end the wait for what is done."""
        found: dict[str, dict[Key, Object]] = {}
        for path in dict.fromkeys(resource.goal.path for resource in waiting):
            objects, _ = mirror.list(
                in_namespace(self._namespace, path) if self._namespace else path, **self._of_stack
            )
            found[path] = {key_of(item): item for item in objects}
        if look_up:
            self._find_unlabeled(api, found, waiting)
        for resource in list(waiting):
            item = found[resource.goal.path].get(resource.key) or self._unlabeled.get(resource)
            if item is None or self._seen.get(resource) is item:
                continue
            self._seen[resource], standing = item, resource.goal.standing(item)
            if standing != self._standings.get(resource):
                if resource in self._standings or not standing.done:
                    self.report(resource, str(standing))
                self._standings[resource] = standing
            if standing.done and resource.kind != "RayCluster":
                del waiting[resource]
        self._compare_with_pods(api, mirror, waiting)

    def _compare_with_pods(
        self, api: ClusterApi, mirror: Mirror, waiting: dict[Awaited, float]
    ) -> None:
        """End the wait for the RayClusters once all are done, if their pods are there."""
        clusters = [resource for resource in waiting if resource.kind == "RayCluster"]
        if not all(
            resource in self._standings and self._standings[resource].done for resource in clusters
        ):
            self._forget()
        elif clusters:
            # Pods that were listed before the statuses may be those that an edit has deleted since.
            self._last = self._last or Mirror(api, mirror.changed)
            evidence = Evidence(self._last, self._namespace)
            for resource in clusters:
                if not pods_missing(self._seen[resource], evidence.pods[resource.key]):
                    del waiting[resource]

    def _forget(self) -> None:
        """End the watch of the pods that the last statuses are compared with."""
        if self._last is not None:
            self._last.stop()
            self._last = None

    def _find_unlabeled(
        self, api: ClusterApi, found: Mapping[str, Mapping[Key, Object]], waiting: Iterable[Awaited]
    ) -> None:
        """Look for what the selector misses: somebody took its label off, or deleted it."""
        missing = [
            resource for resource in waiting if resource.key not in found[resource.goal.path]
        ]
        answers = {
            resource: api.get(
                f"{in_namespace(resource.key[0], resource.goal.path)}/{resource.key[1]}"
            )
            for resource in missing
        }
        self._gone = {resource for resource, item in answers.items() if item is None}
        self._unlabeled = {resource: item for resource, item in answers.items() if item}

    def _is_hopeless(self, resource: Awaited) -> bool:
        """Return whether the goal can't be reached: Pulumi has created everything before a wait."""
        return resource in self._gone or (
            resource in self._standings and self._standings[resource].hopeless
        )

    def _explain(self, mirror: Mirror, waiting: dict[Awaited, float]) -> None:
        """Report the reasons of stuck resources early, before their deadlines.

        The wait for a resource that is done, and lacks no pods a round later, is over: what its
        users do while others are late is their business.
        """
        stuck = []
        for resource in waiting:
            standing, reasons = self._explained.get(resource, (None, []))
            if resource in self._explained and standing == self._standings.get(resource):
                stuck.append(resource)
            else:
                # The state changed since the last look: one more round before the resource counts
                # as stuck.
                self._explained[resource] = (self._standings.get(resource), reasons)
        for resource, now in self._reasons(Evidence(mirror, self._namespace), stuck).items():
            standing, reasons = self._explained[resource]
            if now and now != reasons:
                self.report(
                    resource, f"{standing}: {'; '.join(now)}" if standing else "; ".join(now)
                )
            self._explained[resource] = (standing, now)
            if standing and standing.done and not now:
                del waiting[resource]

    def _put_off(self, mirror: Mirror, waiting: dict[Awaited, float]) -> None:
        """End the wait for resources that need the room of others: Pulumi deletes those later."""
        if not any(
            reasons for resource, (_, reasons) in self._explained.items() if resource in waiting
        ):
            return
        # The pods of all namespaces are there already, if they explain what is stuck.
        query = self._of_stack if self._namespace else {}
        try:
            pods = mirror.list(PODS, **query)[0]
            ours = {
                space["metadata"]["name"] for space in mirror.list(NAMESPACES, **self._of_stack)[0]
            }
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
        for resource in list(waiting):
            if before := sorted(
                {namespace for pool in held_up[resource.key[0]] for namespace in going[pool]}
            ):
                del waiting[resource]
                self.put_off(resource, before)

    def _reasons(
        self, evidence: Evidence, resources: Iterable[Awaited]
    ) -> dict[Awaited, list[str]]:
        """Return the reasons by resource; a server that does not answer is asked once for all."""
        found: dict[Awaited, list[str]] = {}
        failure = ""
        for resource in resources:
            try:
                found[resource] = (
                    [failure] if failure else resource.goal.reasons(evidence, resource.key)
                )
            except ClusterError as error:
                failure = str(error)
                found[resource] = [failure]
        return found


def _ready(condition: ClusterCondition | ServiceCondition) -> Standing:
    return Standing(str(condition), condition.ready)


def _of_job(job: Object, goal: Until) -> Standing:
    condition = job_condition(job)
    return Standing(str(condition), getattr(condition, goal), condition.failed)


GOALS: dict[tuple[Kind, Until], Goal] = {
    ("RayCluster", "ready"): Goal(
        RAY_CLUSTERS, lambda item: _ready(condition_of(item)), reasons_of
    ),
    ("RayService", "ready"): Goal(
        RAY_SERVICES, lambda item: _ready(service_condition(item)), reasons_of_service
    ),
    ("RayJob", "running"): Goal(RAY_JOBS, partial(_of_job, goal="running"), reasons_of_job),
    ("RayJob", "succeeded"): Goal(
        RAY_JOBS, partial(_of_job, goal="succeeded"), partial(reasons_of_job, until_its_end=True)
    ),
}
"""Goals of waits, by kind and state."""
