"""Decision about all that makes pods in a berth's namespace: a pure function of its objects.

Engineers create RayJobs and RayServices beside their RayCluster, KubeRay makes RayClusters and Jobs
of these. Each kind has a field `suspend`. This file also runs in the keeper's pod, and imports only
the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from berth.components.programs.decision import (
    EXPIRED,
    KEEPER,
    KUEUE,
    OUTSIDE_HOURS,
    QUEUE_LABEL,
    BerthState,
    due_since,
    owner_of_suspend,
)
from berth.components.programs.lifetimes import Lifetime

Object = Mapping[str, Any]
Key = tuple[str, str]
"""Kind and name of an object of the namespace."""

PATIENCE = timedelta(minutes=5)
"""Time that KubeRay and a node may take to end a pod, beyond its grace."""

_SHOWN = 3

# States of a RayJob in which it runs or is about to, and those in which KubeRay obeys its `suspend`
# (kuberay v1.6.2, ray-operator/controllers/ray/rayjob_controller.go).
_RUNNING = {"", "Initializing", "Running", "Retrying"}
_OBEYING = _RUNNING | {"Suspending", "Suspended"}


@dataclass(frozen=True)
class NamespaceWorkload:
    """Object that makes pods."""

    key: Key
    """Kind (RayCluster, RayJob, RayService or Job) and name."""
    owner: Key | None
    """Kind and name of the controlling object; None for none."""
    began: datetime
    """Time of creation, or of a RayJob's last start."""
    suspended: bool = False
    """Whether the field `suspend` is set."""
    by_keeper: bool = False
    """Whether the keeper made the last change of `suspend`."""
    changed: datetime | None = None
    """Time of the last change of `suspend`."""
    obeys: bool = True
    """Whether KubeRay, or Kubernetes, does what the field says."""
    running: bool = False
    """Whether this is a RayJob that runs, or is about to."""
    ended: datetime | None = None
    """Time since when a RayJob has ended, or waits for a person; None if it runs."""
    elsewhere: bool = False
    """Whether this is a RayJob on a RayCluster that the RayJob does not own."""
    queued: bool = False
    """Whether Kueue starts it, and starts it again where it has room."""


@dataclass(frozen=True)
class Pod:
    """Pod that has not finished."""

    name: str
    """Name of the pod."""
    owner: Key | None
    """Kind and name of the controlling object; None for none."""
    created: datetime
    """Time of creation."""
    ends: datetime | None = None
    """End of the grace; None if nobody has deleted the pod."""


@dataclass(frozen=True)
class BerthInPass:
    """Berth of the namespace, before and after a pass of the keeper."""

    name: str
    """Name of the berth, and of its own RayCluster."""
    awake: bool = True
    """Whether the RayCluster is there, and awake after this pass."""
    asleep: bool = False
    """Whether the RayCluster is gone, or was suspended before this pass."""
    due: datetime | None = None
    """Time since when hours or expiry want nothing to run; None if they do not."""
    until: datetime | None = None
    """Time before which RayJobs began that may run to their end; None for any time."""
    idle: timedelta | None = None
    """Time without work after which a RayCluster is suspended."""
    grace: timedelta | None = None
    """Longest time that a running RayJob outlives `due`; None for no limit."""
    closed: bool = False
    """Whether a quota of zero refuses new pods."""


@dataclass(frozen=True)
class NamespaceDecision:
    """Decision about a namespace."""

    suspend: Sequence[Key] = ()
    """Workloads to suspend."""
    wake: Sequence[Key] = ()
    """Workloads to wake."""
    left: Sequence[str] = ()
    """Names of pods that nothing ended."""
    closed: bool = False
    """Whether to refuse new pods by a quota of zero."""

    @property
    def note(self) -> str:
        """Why the namespace is closed; "" for an open one."""
        if not self.left:
            return "something was started in it while it slept" if self.closed else ""
        if len(self.left) == 1:
            return f"pod {self.left[0]} does not end"
        names = ", ".join(self.left[:_SHOWN])
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        return f"pods {names}{more} do not end"


@dataclass(frozen=True)
class _Namespace:
    """Workloads of a namespace, and how they belong together."""

    berth: BerthInPass
    now: datetime
    workloads: Mapping[Key, NamespaceWorkload] = field(default_factory=dict)

    def workloads_to_suspend(self) -> list[NamespaceWorkload]:
        """Return what the keeper has to suspend."""
        return [workload for workload in self.workloads.values() if self._has_to_end(workload)]

    def workloads_to_wake(self) -> list[NamespaceWorkload]:
        """Return what the keeper has suspended, and may have pods again; Kueue wakes its own."""
        return [
            workload
            for workload in self.workloads.values()
            if workload.suspended
            and workload.by_keeper
            and not workload.queued
            and self._may_have_pods(workload)
        ]

    def is_late_work(self, workload: NamespaceWorkload) -> bool:
        """Return whether a workload is of a RayJob that began too late, or of anything else."""
        root = self._root(workload)
        return root.key[0] != "RayJob" or self.berth.until is None or root.began >= self.berth.until

    def is_late_pod(self, pod: Pod, suspending: Iterable[Key]) -> bool:
        """Return whether a pod should have ended by now."""
        chain = list(self._chain(pod.owner))
        may_stay = self._may_have_pods(chain[0]) if chain else self.berth.due is None
        if may_stay or any(workload.key in suspending for workload in chain):
            return False
        asked = [workload.changed for workload in chain if workload.suspended and workload.changed]
        return self.now >= (pod.ends or max(asked, default=pod.created)) + PATIENCE

    def _may_have_pods(self, workload: NamespaceWorkload) -> bool:
        berth = self.berth
        root = self._root(workload)
        in_time = berth.due is None
        if root.key == ("RayCluster", berth.name):
            return berth.awake
        if root.key[0] == "RayCluster":
            # A RayCluster beside the berth's goes and comes with it: the keeper cannot ask its Ray.
            return (berth.awake or root.queued) and in_time
        if workload.key[0] == "Job" and root.ended:
            # Nothing submits the job of a RayJob again that has ended.
            return in_time and not workload.suspended
        if workload is not root and root.elsewhere:
            return berth.awake
        if workload is not root and root.ended:
            return in_time and (berth.idle is None or self.now < root.ended + berth.idle)
        return in_time or self._may_end(root)

    def _may_end(self, workload: NamespaceWorkload) -> bool:
        """Return whether a workload is a RayJob that began in time and may run to its end."""
        berth = self.berth
        if berth.due is None or not workload.running or self.is_late_work(workload):
            return False
        return berth.grace is None or self.now < berth.due + berth.grace

    def _has_to_end(self, workload: NamespaceWorkload) -> bool:
        """Return whether the keeper has to suspend a workload, which its owner does not end."""
        if workload.suspended or not workload.obeys:
            return False
        if workload.key == ("RayCluster", self.berth.name) or self._may_have_pods(workload):
            return False
        owner = self.workloads.get(workload.owner) if workload.owner else None
        return owner is None or not owner.obeys or owner.suspended

    def _root(self, workload: NamespaceWorkload) -> NamespaceWorkload:
        """Return the workload that controls another, or whose controller does; else the other."""
        *_, root = self._chain(workload.key)
        return root

    def _chain(self, key: Key | None) -> Iterator[NamespaceWorkload]:
        """Yield an object, its owner, and the owner's owner."""
        for _ in range(len(self.workloads)):
            workload = self.workloads.get(key) if key else None
            if workload is None:
                return
            yield workload
            key = workload.owner


def namespace_decision(
    berth: BerthInPass, workloads: Iterable[NamespaceWorkload], pods: Iterable[Pod], now: datetime
) -> NamespaceDecision:
    """Return the decision about a namespace, whose RayCluster is as this pass leaves it."""
    namespace = _Namespace(berth, now, {workload.key: workload for workload in workloads})
    suspend = namespace.workloads_to_suspend()
    keys = [workload.key for workload in suspend]
    wake = [workload.key for workload in namespace.workloads_to_wake()]
    own = ("RayCluster", berth.name)
    if berth.awake:
        return NamespaceDecision(keys, [key for key in wake if key != own])
    just_now = keys if berth.asleep else [*keys, own]
    late = sorted(pod.name for pod in pods if namespace.is_late_pod(pod, just_now))
    # Whoever starts something in a berth that sleeps would do it again between two passes.
    is_due = berth.due is not None
    again = is_due and berth.asleep and any(map(namespace.is_late_work, suspend))
    closed = bool(late) or again or (berth.closed and is_due)
    return NamespaceDecision(keys, wake, late, closed)


def berth_in_pass(
    name: str,
    lifetime: Lifetime,
    state: BerthState,
    now: datetime,
    *,
    there: bool,
    change: bool | None,
) -> BerthInPass:
    """Return a berth whose RayCluster this pass suspends or wakes.

    Args:
        name: name of the berth.
        lifetime: lifecycle of the berth.
        state: state of the berth before the pass.
        now: time of the pass.
        there: whether the berth's RayCluster is there.
        change: True to suspend it, False to wake it, None for no change.
    """
    due = due_since(lifetime, state, now)
    since = due[1] if due else None
    # Moments of the API server: with `--at`, the keeper's clock is another one.
    by_keeper = state.asleep if state.suspended_by in (EXPIRED, OUTSIDE_HOURS) else None
    suspended = state.suspended if change is None else change
    return BerthInPass(
        name=name,
        awake=there and not suspended,
        asleep=state.suspended or not there,
        due=since,
        until=min(since, by_keeper or since) if since else None,
        idle=lifetime.idle,
        grace=lifetime.grace,
    )


def workload_of(kind: str, item: Object) -> NamespaceWorkload | None:
    """Return the part of an object that the decision needs; None for a Job that has finished."""
    spec = item.get("spec") or {}
    if kind == "Job":
        return None if _is_finished(item) else _plain_workload(kind, item, spec)
    if kind == "RayService":
        cluster = spec.get("rayClusterConfig") or {}
        return _plain_workload(kind, item, cluster, "f:rayClusterConfig")
    if kind == "RayJob":
        return _ray_job(item, spec)
    return _plain_workload(kind, item, spec)


def _plain_workload(kind: str, item: Object, holder: Object, *inside: str) -> NamespaceWorkload:
    """Return a workload of any kind, by what holds its field `suspend`, inside its spec."""
    metadata = item["metadata"]
    manager, changed = owner_of_suspend(metadata, "f:spec", *inside)
    return NamespaceWorkload(
        key=(kind, metadata["name"]),
        owner=controller_of(metadata),
        began=_moment(metadata["creationTimestamp"]),
        suspended=bool(holder.get("suspend")),
        by_keeper=manager == KEEPER,
        changed=changed,
        queued=QUEUE_LABEL in (metadata.get("labels") or {}) or manager.startswith(KUEUE),
    )


def _ray_job(item: Object, spec: Object) -> NamespaceWorkload:
    workload = _plain_workload("RayJob", item, spec)
    status = item.get("status") or {}
    started = status.get("startTime")
    ended = status.get("endTime") or started
    state = str(status.get("jobDeploymentStatus") or "")
    running = state in _RUNNING
    since_ended = None
    if not running:
        since_ended = _moment(ended) if ended else workload.began
    owns_cluster = bool(spec.get("rayClusterSpec")) and not spec.get("clusterSelector")
    # KubeRay takes a suspended RayJob for invalid otherwise, and leaves its pods alone then.
    may_be_suspended = owns_cluster and bool(spec.get("shutdownAfterJobFinishes"))
    return replace(
        workload,
        began=max(workload.began, _moment(started)) if started else workload.began,
        obeys=may_be_suspended and state in _OBEYING,
        running=running,
        ended=since_ended,
        elsewhere=not owns_cluster,
    )


def _is_finished(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in conditions
    )


def pod_of(item: Object) -> Pod | None:
    """Return the part of a pod that the decision needs; None for one that has finished."""
    metadata = item["metadata"]
    if (item.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return None
    ends = metadata.get("deletionTimestamp")
    created = _moment(metadata["creationTimestamp"])
    return Pod(metadata["name"], controller_of(metadata), created, _moment(ends) if ends else None)


def controller_of(metadata: Object) -> Key | None:
    """Return kind and name of the object that controls another one; None for none."""
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller"):
            return owner["kind"], owner["name"]
    return None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
