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
from datetime import datetime

from berth.components.cluster.api import (
    NAMESPACES,
    PODS,
    ClusterApi,
    ClusterError,
    Object,
    in_namespace,
    unreachable,
)
from berth.components.cluster.mirror import Mirror
from berth.components.cluster.object_fields import ObjectKey, key_of
from berth.components.cluster.pods import finds_no_node, has_a_node, selected_pool
from berth.components.core.owner import STACK_LABEL
from berth.components.programs.lifetimes import parse_duration
from berth.components.ray.live.cluster_condition import pods_missing
from berth.components.ray.live.goals import Awaited, Standing
from berth.components.ray.live.live_objects import LiveObjects

# Deadlines and a stop are noticed within this time.
_PAUSE_SECONDS = 1.0
# Changes within this time are looked at together.
_SETTLE_SECONDS = 0.1
_ROUND_SECONDS = 5.0


@dataclass
class ReadinessWait:
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
    give_up: Callable[[Awaited, str], None]
    """Called with a resource whose wait is over before its goal, which fails no update, and with a
    warning."""
    began: datetime | None = None
    """Begin of the update, by this machine's clock. A RayJob that is older, and has failed, fails
    no update but its own. None: all RayJobs are new."""
    once: bool = False
    """Look once, and return whatever is not done then, without reasons."""
    stop: threading.Event = field(default_factory=threading.Event)
    _seen: dict[Awaited, Object] = field(default_factory=dict, init=False)
    _standings: dict[Awaited, Standing] = field(default_factory=dict, init=False)
    _explained: dict[Awaited, tuple[Standing | None, list[str]]] = field(
        default_factory=dict, init=False
    )
    """State at the last round, and the reasons that were reported for it."""
    _unlabeled: dict[Awaited, Object] = field(default_factory=dict, init=False)
    _gone: set[Awaited] = field(default_factory=set, init=False)
    _last: Mirror | None = field(default=None, init=False)
    """Watch of the pods that the last statuses are compared with."""

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
            self._forget_pods()
        # A resource that got ready during the look-up has no reasons.
        return {resource: reasons for resource, reasons in failed.items() if reasons or self.once}

    def _wait(self, api: ClusterApi, mirror: Mirror) -> dict[Awaited, list[str]]:
        waiting = self._deadlines()
        next_round = time.monotonic()
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
            over = [resource for resource in waiting if self._is_over(resource, waiting)]
            for resource, reasons in self._reasons(LiveObjects(api, self._namespace), over).items():
                if reasons and self._failed_before(resource):
                    self.give_up(resource, resource.failed_before(reasons))
                else:
                    failed[resource] = reasons
            for resource in over:
                del waiting[resource]
            if waiting:
                mirror.changed.wait(_PAUSE_SECONDS)
                self.stop.wait(_SETTLE_SECONDS)
                mirror.changed.clear()
        return failed

    def _deadlines(self) -> dict[Awaited, float]:
        """Return the end of the wait by resource, in seconds of the monotonic clock."""
        now = time.monotonic()
        if self.once:
            return dict.fromkeys(self.awaited, now)
        return {resource: now + parse_duration(resource.timeout) for resource in self.awaited}

    def _is_over(self, resource: Awaited, waiting: Mapping[Awaited, float]) -> bool:
        """Return whether the time is over, or the goal can't be reached.

        Pulumi has created everything before a wait: what is gone does not come.
        """
        if time.monotonic() >= waiting[resource] or resource in self._gone:
            return True
        return resource in self._standings and self._standings[resource].hopeless

    def _failed_before(self, resource: Awaited) -> bool:
        """Return whether a RayJob of an earlier update has failed, which another edit cannot help.

        No other kind is hopeless: a RayCluster or RayService may still get ready.
        """
        standing = self._standings.get(resource)
        if self.began is None or not (standing and standing.hopeless):
            return False
        created = str(self._seen[resource]["metadata"].get("creationTimestamp") or "")
        return bool(created) and datetime.fromisoformat(created) < self.began

    @property
    def _namespace(self) -> str:
        """The only namespace with resources, beyond which an engineer may list nothing; else ""."""
        namespaces = {resource.key[0] for resource in self.awaited}
        return namespaces.pop() if len(namespaces) == 1 else ""

    @property
    def _of_stack(self) -> dict[str, str]:
        return {"labelSelector": f"{STACK_LABEL}={self.stack}"}

    def _update(
        self, api: ClusterApi, mirror: Mirror, waiting: dict[Awaited, float], *, look_up: bool
    ) -> None:
        """Take the objects over as they are now; end the wait for what is done."""
        labeled: dict[str, dict[ObjectKey, Object]] = {}
        for path in dict.fromkeys(resource.goal.path for resource in waiting):
            whole_path = in_namespace(self._namespace, path) if self._namespace else path
            objects, _ = mirror.list(whole_path, **self._of_stack)
            labeled[path] = {key_of(item): item for item in objects}
        if look_up:
            self._find_unlabeled(api, labeled, waiting)
        for resource in list(waiting):
            item = labeled[resource.goal.path].get(resource.key) or self._unlabeled.get(resource)
            if item is None or self._seen.get(resource) is item:
                continue
            self._seen[resource] = item
            standing = resource.goal.standing(item)
            self._take_over(resource, standing)
            if standing.done and resource.kind != "RayCluster":
                del waiting[resource]
        self._compare_with_pods(api, mirror, waiting)

    def _take_over(self, resource: Awaited, standing: Standing) -> None:
        """Note a resource's state, and report it if it has changed."""
        before = self._standings.get(resource)
        if standing == before:
            return
        if before is not None or not standing.done:
            self.report(resource, str(standing))
        self._standings[resource] = standing

    def _compare_with_pods(
        self, api: ClusterApi, mirror: Mirror, waiting: dict[Awaited, float]
    ) -> None:
        """End the wait for the RayClusters once all are done, if their pods are there."""
        clusters = [resource for resource in waiting if resource.kind == "RayCluster"]
        if not all(
            resource in self._standings and self._standings[resource].done for resource in clusters
        ):
            self._forget_pods()
        elif clusters:
            # Pods that were listed before the statuses may be those that an edit has deleted since.
            self._last = self._last or Mirror(api, mirror.changed)
            live = LiveObjects(self._last, self._namespace)
            for resource in clusters:
                if not pods_missing(self._seen[resource], live.pods[resource.key]):
                    del waiting[resource]

    def _forget_pods(self) -> None:
        """End the watch of the pods that the last statuses are compared with."""
        if self._last is not None:
            self._last.stop()
            self._last = None

    def _find_unlabeled(
        self,
        api: ClusterApi,
        labeled: Mapping[str, Mapping[ObjectKey, Object]],
        waiting: Iterable[Awaited],
    ) -> None:
        """Look for what the selector misses: somebody took its label off, or deleted it."""
        gone = set()
        unlabeled = {}
        for resource in waiting:
            if resource.key in labeled[resource.goal.path]:
                continue
            namespace, name = resource.key
            item = api.get(f"{in_namespace(namespace, resource.goal.path)}/{name}")
            if item is None:
                gone.add(resource)
            else:
                unlabeled[resource] = item
        self._gone = gone
        self._unlabeled = unlabeled

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
        for resource, now in self._reasons(LiveObjects(mirror, self._namespace), stuck).items():
            standing, reasons = self._explained[resource]
            if now and now != reasons:
                text = "; ".join(now)
                self.report(resource, f"{standing}: {text}" if standing else text)
            self._explained[resource] = (standing, now)
            if standing and standing.done and not now:
                del waiting[resource]

    def _put_off(self, mirror: Mirror, waiting: dict[Awaited, float]) -> None:
        """End the wait for resources that need the room of others: Pulumi deletes those later."""
        if not any(self._explained[resource][1] for resource in waiting):
            return
        # The pods of all namespaces are there already, if they explain what is stuck.
        query = self._of_stack if self._namespace else {}
        try:
            pods = mirror.list(PODS, **query)[0]
            spaces = mirror.list(NAMESPACES, **self._of_stack)[0]
        except ClusterError:
            return  # An engineer who may not list the pods waits to the deadline.
        leaving = {space["metadata"]["name"] for space in spaces}.difference(self.namespaces)
        held_up_by = _held_up_by(pods, leaving)
        for resource in list(waiting):
            if going := held_up_by.get(resource.key[0]):
                del waiting[resource]
                self.give_up(resource, resource.put_off(self.stack, going))

    def _reasons(self, live: LiveObjects, resources: Iterable[Awaited]) -> dict[Awaited, list[str]]:
        """Return the reasons by resource; a server that does not answer is asked once for all."""
        reasons: dict[Awaited, list[str]] = {}
        failure = ""
        for resource in resources:
            try:
                reasons[resource] = (
                    [failure] if failure else resource.goal.reasons(live, resource.key)
                )
            except ClusterError as error:
                failure = str(error)
                reasons[resource] = [failure]
        return reasons


def _held_up_by(pods: Iterable[Object], leaving: Collection[str]) -> dict[str, list[str]]:
    """Return the namespaces that leave a pool, by namespace whose pods find no node on that pool.

    Args:
        pods: pods of all namespaces.
        leaving: namespaces that the update deletes at its end.
    """
    leaving_pool: defaultdict[str, set[str]] = defaultdict(set)
    pools_without_room: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        namespace = str(pod["metadata"]["namespace"])
        if has_a_node(pod) and namespace in leaving:
            leaving_pool[selected_pool(pod)].add(namespace)
        elif finds_no_node(pod):
            pools_without_room[namespace].add(selected_pool(pod))
    held_up_by = {}
    for namespace, pools in pools_without_room.items():
        going = set().union(*(leaving_pool[pool] for pool in pools))
        if going:
            held_up_by[namespace] = sorted(going)
    return held_up_by
