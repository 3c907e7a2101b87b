"""Decision to suspend or wake a berth: a pure function of its lifecycle, its state, and the time.

This file also runs in the keeper's pod, and imports only the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from berth.components.programs.lifetimes import WEEK, Hours, Lifetime, moment

SUSPENDED_BY = "berth/suspended-by"
IDLE_SINCE = "berth/idle-since"
HELD_UP = "berth/held-up"
DELETE_DUE = "berth/delete-due"
WOKEN_AT = "berth/woken-at"
BEGUN = "berth/begun"
CLOSED = "berth/closed"
"""Annotations of a RayCluster that the keeper writes, for itself and for people."""

EXPIRED = "expired"
OUTSIDE_HOURS = "hours"
UNUSED = "idle"
"""Reasons for which the keeper suspends."""

WOKEN_FOR = timedelta(days=1)
"""Time that an expired berth stays awake after a person woke it, to fetch data or extend it."""


@dataclass(frozen=True)
class BerthState:
    """State of a berth."""

    created: datetime
    """Time of the RayCluster's creation."""
    suspended: bool = False
    """Whether the berth is suspended, or about to be."""
    suspended_by: str = ""
    """The keeper's reason; "" if a person suspended the berth."""
    asleep: datetime | None = None
    """Time of the suspension; None if the berth is awake."""
    woken: datetime | None = None
    """Time when a person last woke the berth; None for never."""
    idle_since: datetime | None = None
    """Time since when the keeper has seen nothing run."""
    begun: datetime | None = None
    """Creation of the first RayCluster, where the lifetime begins; None for this one."""
    by_kueue: bool = False
    """Whether Kueue started the berth, which it starts again after every suspension."""

    @property
    def begin(self) -> datetime:
        """Time from which the lifetime counts: who creates the RayCluster again resets no clock."""
        return min(self.created, self.begun or self.created)

    @property
    def requested(self) -> datetime:
        """Time when a person last asked for the berth, by creating or waking it."""
        return max(self.created, self.woken or self.created)


@dataclass(frozen=True)
class Work:
    """Work on a berth, as Ray reports it."""

    running: tuple[str, ...] = ()
    """Running jobs, sessions and actors."""
    unknown: str = ""
    """Why Ray could not be asked; "" if it could."""
    last: datetime | None = None
    """Time when the last work ended, or Ray started."""
    waiting: bool = False
    """Whether the head has never started: nothing runs, and the berth is not idle."""


@dataclass(frozen=True)
class Decision:
    """Decision of the keeper, with its notes."""

    suspend: bool | None = None
    """True to suspend the berth, False to wake it, None to change nothing."""
    suspended_by: str = ""
    """The keeper's reason for the suspension; "" for none."""
    idle_since: datetime | None = None
    """Time since when nothing has run."""
    held_up: str = ""
    """Why a due suspension is delayed."""
    delete_due: datetime | None = None
    """Time since when the berth is due for deletion."""

    def notes(self) -> dict[str, str | None]:
        """Return the annotations; None for one to remove."""
        return {
            SUSPENDED_BY: self.suspended_by or None,
            IDLE_SINCE: timestamp(self.idle_since) if self.idle_since else None,
            HELD_UP: self.held_up or None,
            DELETE_DUE: timestamp(self.delete_due) if self.delete_due else None,
        }


def decision_for(
    lifetime: Lifetime, state: BerthState, work: Work | None, now: datetime
) -> Decision:
    """Return the decision about a berth; a suspended one has no work."""
    delete_due = _delete_due(lifetime, state, now)
    if state.suspended or work is None:
        return _of_suspended(lifetime, state, now, delete_due)
    idle_since = _idle_since(lifetime, state, work, now)
    due = due_since(lifetime, state, now)
    if due is not None:
        reason, since = due
        busy = _busy(work)
        if busy and (lifetime.grace is None or now < since + lifetime.grace):
            held_up = f"{_WORDS[reason]}, but {busy}"
            return Decision(idle_since=idle_since, held_up=held_up, delete_due=delete_due)
        return Decision(suspend=True, suspended_by=reason, delete_due=delete_due)
    if idle_since and lifetime.idle and now >= idle_since + lifetime.idle:
        # Hours and expiry, which nobody in a berth may escape, suspend it once, as after any wake.
        if state.by_kueue:
            return Decision(idle_since=idle_since, held_up=_KUEUE, delete_due=delete_due)
        return Decision(suspend=True, suspended_by=UNUSED, delete_due=delete_due)
    return Decision(idle_since=idle_since, delete_due=delete_due)


def _delete_due(lifetime: Lifetime, state: BerthState, now: datetime) -> datetime | None:
    """Return since when an expired berth is due for deletion; None if it is not."""
    expires = lifetime.expires_at(state.begin)
    if not expires or not lifetime.delete_after:
        return None
    due = expires + lifetime.delete_after
    return due if now >= due else None


_WORDS = {EXPIRED: "it has expired", OUTSIDE_HOURS: "it is outside of its working hours"}

# An admitted RayCluster runs, whoever suspends it: Kueue writes `suspend` of what it manages
# (https://github.com/kubernetes-sigs/kueue, pkg/controller/jobframework/reconciler.go).
_KUEUE = "nothing runs on it, but Kueue would start it again at once"


def _of_suspended(
    lifetime: Lifetime, state: BerthState, now: datetime, delete_due: datetime | None
) -> Decision:
    """Return the decision about a suspended berth; only working hours wake one."""
    reason = state.suspended_by
    expires = lifetime.expires_at(state.begin)
    if reason == OUTSIDE_HOURS and expires is not None and now >= expires:
        reason = EXPIRED
    if reason == OUTSIDE_HOURS and outside_since(lifetime, now) is None:
        return Decision(suspend=False)
    return Decision(suspended_by=reason, delete_due=delete_due)


def due_since(lifetime: Lifetime, state: BerthState, now: datetime) -> tuple[str, datetime] | None:
    """Return why a berth is due for suspension, idle or not, and since when."""
    expires = lifetime.expires_at(state.begin)
    if expires is not None:
        # A person who wakes the berth later gets a day, and so does one who creates it with a past
        # date.
        since = expires
        if state.requested >= expires:
            since = max(expires, state.requested + WOKEN_FOR)
        if now >= since:
            return EXPIRED, since
    outside = outside_since(lifetime, now)
    # A berth that a person wakes at night stays awake until the next end of working hours.
    if outside is not None and state.requested < outside:
        return OUTSIDE_HOURS, outside
    return None


def _busy(work: Work) -> str:
    """Return the work that a suspension would end; "" for none."""
    if len(work.running) > 1:
        return f"{work.running[0]} and {len(work.running) - 1} more run"
    if work.running:
        return f"{work.running[0]} runs"
    return f"its work is unknown: {work.unknown}" if work.unknown else ""


def _idle_since(
    lifetime: Lifetime, state: BerthState, work: Work, now: datetime
) -> datetime | None:
    """Return since when nothing has run; None if something runs, or that is unknown."""
    if lifetime.idle is None or work.running or work.unknown or work.waiting:
        return None
    return max(filter(None, (state.idle_since or now, work.last, state.woken)))


def outside_since(lifetime: Lifetime, now: datetime) -> datetime | None:
    """Return the end of the last working hours; None within working hours, and without any."""
    if lifetime.hours is None:
        return None
    spans = _spans(lifetime.hours, lifetime.zone, now)
    if any(begin <= now < end for begin, end in spans):
        return None
    return max(end for _, end in spans if end <= now)


def next_begin(lifetime: Lifetime, now: datetime) -> datetime | None:
    """Return the next begin of working hours; None without any."""
    if lifetime.hours is None:
        return None
    return min(begin for begin, _ in _spans(lifetime.hours, lifetime.zone, now) if begin > now)


def _spans(hours: Hours, zone: str, now: datetime) -> list[tuple[datetime, datetime]]:
    """Return the working hours of the weeks before and after a moment, in UTC.

    Times follow the zone's clocks, so a change to or from summer time makes a span shorter or
    longer.
    """
    clocks = ZoneInfo(zone)
    today = now.astimezone(clocks).date()
    days = (today + timedelta(days=offset) for offset in range(-WEEK - 1, WEEK + 2))
    ends_next_day = hours.end <= hours.begin
    spans: list[tuple[datetime, datetime]] = []
    for day in days:
        if day.weekday() in hours.days:
            last = day + timedelta(days=ends_next_day)
            spans.append((moment(day, hours.begin, clocks), moment(last, hours.end, clocks)))
    return spans


KEEPER = "berth-keeper"
"""Field manager of the keeper: owner of its notes, and of `spec.suspend` that it has set."""

SUSPENSION = "berth-suspension"
"""Field manager of `berth suspend` and `berth wake`. No stack sets `spec.suspend`, so `pulumi up`
and `pulumi refresh` leave it alone."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label of what Kueue manages, which its webhook may set with `suspend`, in its creator's name."""

KUEUE = "kueue"
"""Beginning of Kueue's field managers (https://github.com/kubernetes-sigs/kueue,
pkg/util/useragent)."""


def state_of(cluster: Mapping[str, Any]) -> BerthState:
    """Return the state of a berth from its RayCluster."""
    metadata = cluster["metadata"]
    suspended = bool((cluster.get("spec") or {}).get("suspend"))
    annotations = metadata.get("annotations") or {}
    manager, changed = owner_of_suspend(metadata, "f:spec")

    def noted(key: str) -> datetime | None:
        return datetime.fromisoformat(annotations[key]) if key in annotations else None

    woken = changed if not suspended and manager != KEEPER else None
    return BerthState(
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        suspended=suspended,
        suspended_by=annotations.get(SUSPENDED_BY, "") if suspended and manager == KEEPER else "",
        asleep=changed if suspended else None,
        # A suspension overwrites who woke it before, and RayJobs of that time may still run.
        woken=woken or noted(WOKEN_AT),
        idle_since=noted(IDLE_SINCE),
        begun=noted(BEGUN),
        by_kueue=not suspended and manager.startswith(KUEUE),
    )


def owner_of_suspend(metadata: Mapping[str, Any], *inside: str) -> tuple[str, datetime | None]:
    """Return field manager and time of the last change of an object's `suspend`, in a parent."""
    for entry in metadata.get("managedFields") or []:
        fields: Any = entry.get("fieldsV1") or {}
        for name in inside:
            fields = fields.get(name) or {}
        if "f:suspend" in fields:
            return str(entry.get("manager")), datetime.fromisoformat(entry["time"])
    return "", None


def timestamp(moment: datetime) -> str:
    """Return a moment in the API server's form: 2026-01-31T12:00:00Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
