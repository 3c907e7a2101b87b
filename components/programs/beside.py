"""Decision about all that makes pods in a berth's namespace: a pure function of its objects.

Engineers create RayJobs and RayServices beside their RayCluster, KubeRay makes RayClusters and Jobs
of these. Each kind has a field `suspend`. This file also runs in the keeper's pod, and imports only
the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from berth.components.programs.decision import (
    EXPIRED,
    KEEPER,
    KUEUE,
    OUTSIDE_HOURS,
    QUEUE_LABEL,
    Known,
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
class Thing:
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
class Berth:
    """Berth that the things are beside."""

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
class Verdict:
    """Decision about a namespace."""

    suspend: Sequence[Key] = ()
    """Things to suspend."""
    wake: Sequence[Key] = ()
    """Things to wake."""
    left: Sequence[str] = ()
    """Names of pods that nothing ended."""
    closed: bool = False
    """Whether to refuse new pods by a quota of zero."""

    @property
    def note(self) -> str:
        """Why the namespace is closed; "" for an open one."""
        if not self.left:
            return "something was started in it while it slept" if self.closed else ""
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        one = len(self.left) == 1
        return (
            f"{'pod' if one else 'pods'} {', '.join(self.left[:_SHOWN])}{more}"
            f" {'does' if one else 'do'} not end"
        )


@dataclass(frozen=True)
class _Judge:
    berth: Berth
    now: datetime
    things: Mapping[Key, Thing] = field(default_factory=dict)

    def wanted(self, thing: Thing) -> bool:
        """Return whether a thing may have pods."""
        berth, root = self.berth, self.root(thing)
        in_time = berth.due is None
        if root.key == ("RayCluster", berth.name):
            return berth.awake
        if root.key[0] == "RayCluster":
            # A RayCluster beside the berth's goes and comes with it: the keeper cannot ask its Ray.
            return (berth.awake or root.queued) and in_time
        if thing.key[0] == "Job" and root.ended:
            # Nothing submits the job of a RayJob again that has ended.
            return in_time and not thing.suspended
        if thing is not root and root.elsewhere:
            return berth.awake
        if thing is not root and root.ended:
            return in_time and (berth.idle is None or self.now < root.ended + berth.idle)
        return in_time or self.excused(root)

    def excused(self, thing: Thing) -> bool:
        """Return whether a thing is a RayJob that began in time and may end."""
        berth = self.berth
        if berth.due is None or not thing.running or self.is_late_work(thing):
            return False
        return berth.grace is None or self.now < berth.due + berth.grace

    def is_late_work(self, thing: Thing) -> bool:
        """Return whether a thing is of a RayJob that began too late, or of anything else."""
        root = self.root(thing)
        return root.key[0] != "RayJob" or self.berth.until is None or root.began >= self.berth.until

    def to_suspend(self, thing: Thing) -> bool:
        """Return whether the keeper has to suspend a thing, which its owner does not end."""
        if (
            thing.suspended
            or not thing.obeys
            or thing.key == ("RayCluster", self.berth.name)
            or self.wanted(thing)
        ):
            return False
        owner = self.things.get(thing.owner) if thing.owner else None
        return owner is None or not owner.obeys or owner.suspended

    def is_late(self, pod: Pod, suspending: Iterable[Key]) -> bool:
        """Return whether a pod should have ended by now."""
        chain = list(self.chain(pod.owner))
        if self.wanted(chain[0]) if chain else self.berth.due is None:
            return False
        if any(thing.key in suspending for thing in chain):
            return False
        asked = [thing.changed for thing in chain if thing.suspended and thing.changed]
        return self.now >= (pod.ends or max(asked, default=pod.created)) + PATIENCE

    def root(self, thing: Thing) -> Thing:
        """Return the thing that controls a thing, or whose controller does; else the thing."""
        *_, root = self.chain(thing.key)
        return root

    def chain(self, key: Key | None) -> Iterable[Thing]:
        """Yield an object, its owner, and the owner's owner."""
        for _ in range(len(self.things)):
            thing = self.things.get(key) if key else None
            if thing is None:
                return
            yield thing
            key = thing.owner


def judge(berth: Berth, things: Iterable[Thing], pods: Iterable[Pod], now: datetime) -> Verdict:
    """Return the decision about a namespace, whose RayCluster is as this pass leaves it."""
    found = {thing.key: thing for thing in things}
    judging = _Judge(berth, now, found)
    suspend = [thing for thing in found.values() if judging.to_suspend(thing)]
    asleep = [
        thing
        for thing in found.values()
        if thing.suspended and thing.by_keeper and not thing.queued
    ]
    wake = [thing.key for thing in asleep if judging.wanted(thing)]
    keys = [thing.key for thing in suspend]
    own = ("RayCluster", berth.name)
    if berth.awake:
        return Verdict(keys, [key for key in wake if key != own])
    just_now = keys if berth.asleep else [*keys, own]
    late = sorted(pod.name for pod in pods if judging.is_late(pod, just_now))
    # Whoever starts something in a berth that sleeps would do it again between two passes.
    due = berth.due is not None
    again = due and berth.asleep and any(judging.is_late_work(thing) for thing in suspend)
    return Verdict(keys, wake, late, closed=bool(late) or again or (berth.closed and due))


def berth_of(
    name: str, lifetime: Lifetime, known: Known, now: datetime, *, there: bool, change: bool | None
) -> Berth:
    """Return the state of a berth, whose RayCluster this pass suspends (True) or wakes (False)."""
    due = due_since(lifetime, known, now)
    since = due[1] if due else None
    # Moments of the API server: with `--at`, the keeper's clock is another one.
    by_keeper = known.asleep if known.suspended_by in (EXPIRED, OUTSIDE_HOURS) else None
    return Berth(
        name=name,
        awake=there and not (known.suspended if change is None else change),
        asleep=known.suspended or not there,
        due=since,
        until=min(since, by_keeper or since) if since else None,
        idle=lifetime.idle,
        grace=lifetime.grace,
    )


def thing_of(kind: str, item: Object) -> Thing | None:
    """Return the part of an object that the decision needs; None for a Job that has finished."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    if kind == "Job" and any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in status.get("conditions") or []
    ):
        return None
    inside = ("f:spec", "f:rayClusterConfig") if kind == "RayService" else ("f:spec",)
    cluster = spec.get("rayClusterConfig") or {}
    suspended = bool((cluster if kind == "RayService" else spec).get("suspend"))
    manager, changed = owner_of_suspend(metadata, *inside)
    state = str(status.get("jobDeploymentStatus") or "")
    is_job = kind == "RayJob"
    started = [_moment(status["startTime"])] if is_job and status.get("startTime") else []
    running = is_job and state in _RUNNING
    ended = _moment(
        status.get("endTime") or status.get("startTime") or metadata["creationTimestamp"]
    )
    own = bool(spec.get("rayClusterSpec")) and not spec.get("clusterSelector")
    return Thing(
        key=(kind, metadata["name"]),
        owner=controller_of(metadata),
        began=max([_moment(metadata["creationTimestamp"]), *started]),
        suspended=suspended,
        by_keeper=manager == KEEPER,
        changed=changed,
        # KubeRay takes a suspended RayJob for invalid otherwise, and leaves its pods alone then.
        obeys=not is_job
        or (own and bool(spec.get("shutdownAfterJobFinishes")) and state in _OBEYING),
        running=running,
        ended=ended if is_job and not running else None,
        elsewhere=is_job and not own,
        queued=QUEUE_LABEL in (metadata.get("labels") or {}) or manager.startswith(KUEUE),
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
    owners = [owner for owner in metadata.get("ownerReferences") or [] if owner.get("controller")]
    return (owners[0]["kind"], owners[0]["name"]) if owners else None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
