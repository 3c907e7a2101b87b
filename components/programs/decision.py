"""Whether a berth is to be suspended or woken: a pure function of its lifecycle, of what is known of it, and of the time.

This file runs in the keeper's pod too, where there are no libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from berth.components.programs.lifetimes import WEEK, Hours, Lifetime, moment

SUSPENDED_BY = "berth/suspended-by"
IDLE_SINCE = "berth/idle-since"
HELD_UP = "berth/held-up"
DELETE_DUE = "berth/delete-due"
NOTES = (SUSPENDED_BY, IDLE_SINCE, HELD_UP, DELETE_DUE)
"""Annotations of a RayCluster that the keeper writes: what it remembers, and what people are told."""

EXPIRED, OUTSIDE_HOURS, UNUSED = "expired", "hours", "idle"
"""Why the keeper suspends."""

WOKEN_FOR = timedelta(days=1)
"""How long an expired berth stays that somebody woke: to fetch what is left on it, or to extend it."""


@dataclass(frozen=True)
class Known:
    """What is known of a berth.

    Attributes:
        created: when it was made.
        suspended: it is suspended, or about to be.
        suspended_by: why the keeper did that; "" where somebody else did.
        woken: when somebody last woke it; None where nobody did.
        idle_since: since when the keeper has seen nothing run on it.
    """

    created: datetime
    suspended: bool = False
    suspended_by: str = ""
    woken: datetime | None = None
    idle_since: datetime | None = None

    @property
    def wanted(self) -> datetime:
        """When somebody last wanted it to be there."""
        return max(self.created, self.woken or self.created)


@dataclass(frozen=True)
class Work:
    """What runs on a berth, as Ray says.

    Attributes:
        running: what does.
        unknown: why it can't be told; "" where it can.
        last: when something ended last, or Ray itself began, as far as Ray knows.
        waiting: its head has never begun, so that nothing can run, and it is not idle either.
    """

    running: tuple[str, ...] = ()
    unknown: str = ""
    last: datetime | None = None
    waiting: bool = False


@dataclass(frozen=True)
class Decision:
    """What is to be done, and remembered.

    Attributes:
        suspend: True to suspend it, False to wake it, None to leave it as it is.
        suspended_by: why it is suspended by the keeper from now on; "" where it is not.
        idle_since: since when nothing has run on it.
        held_up: why a suspension that is due is not done yet.
        delete_due: since when it is due to be deleted.
    """

    suspend: bool | None = None
    suspended_by: str = ""
    idle_since: datetime | None = None
    held_up: str = ""
    delete_due: datetime | None = None

    def notes(self) -> dict[str, str | None]:
        """As annotations; None for one that is not to be there."""
        return {
            SUSPENDED_BY: self.suspended_by or None,
            IDLE_SINCE: stamp(self.idle_since) if self.idle_since else None,
            HELD_UP: self.held_up or None,
            DELETE_DUE: stamp(self.delete_due) if self.delete_due else None,
        }


def decide(lifetime: Lifetime, known: Known, work: Work | None, now: datetime) -> Decision:
    """What is to be done with a berth.

    Args:
        lifetime: what its settings say.
        known: what is known of it.
        work: what runs on it; None for a suspended one, which is not asked.
        now: with a time zone.
    """
    expires = lifetime.expires_at(known.created)
    expired = expires is not None and now >= expires
    due_for_deletion = expires + lifetime.delete_after if expires and lifetime.delete_after else None
    delete_due = due_for_deletion if due_for_deletion and now >= due_for_deletion else None
    if known.suspended or work is None:
        return _of_suspended(lifetime, known, now, expired=expired, delete_due=delete_due)
    idle_since = _idle_since(lifetime, known, work, now)
    due = _due(lifetime, known, now, expires)
    if due is not None:
        reason, since = due
        busy = _busy(work)
        if busy and (lifetime.grace is None or now < since + lifetime.grace):
            held_up = f"{_WORDS[reason]}, but {busy}"
            return Decision(idle_since=idle_since, held_up=held_up, delete_due=delete_due)
        return Decision(suspend=True, suspended_by=reason, delete_due=delete_due)
    if idle_since and lifetime.idle and now >= idle_since + lifetime.idle:
        return Decision(suspend=True, suspended_by=UNUSED, delete_due=delete_due)
    return Decision(idle_since=idle_since, delete_due=delete_due)


_WORDS = {EXPIRED: "it has expired", OUTSIDE_HOURS: "it is outside of its working hours"}


def _of_suspended(
    lifetime: Lifetime, known: Known, now: datetime, *, expired: bool, delete_due: datetime | None
) -> Decision:
    """Only what was suspended for the night comes back by itself."""
    reason = known.suspended_by
    if reason == OUTSIDE_HOURS and expired:
        reason = EXPIRED
    if reason == OUTSIDE_HOURS and (lifetime.hours is None or outside_since(lifetime, now) is None):
        return Decision(suspend=False)
    return Decision(suspended_by=reason, delete_due=delete_due)


def _due(lifetime: Lifetime, known: Known, now: datetime, expires: datetime | None) -> tuple[str, datetime] | None:
    """Why a berth that is awake is to be suspended whether it is idle or not, and since when."""
    if expires is not None:
        # Somebody who wakes it after that gets a day; so does one who makes it anew with a date that is past.
        since = max(expires, known.wanted + WOKEN_FOR) if known.wanted >= expires else expires
        if now >= since:
            return EXPIRED, since
    outside = outside_since(lifetime, now)
    # Who wakes it at night wants it then: it stays until the working hours end the next time.
    if outside is not None and known.wanted < outside:
        return OUTSIDE_HOURS, outside
    return None


def _busy(work: Work) -> str:
    """What may be lost by a suspension."""
    if work.running:
        more = f" and {len(work.running) - 1} more" if len(work.running) > 1 else ""
        return f"{work.running[0]}{more} {'run' if more else 'runs'}"
    return f"what runs on it can't be told: {work.unknown}" if work.unknown else ""


def _idle_since(lifetime: Lifetime, known: Known, work: Work, now: datetime) -> datetime | None:
    """Since when nothing has run; None where something does, or it can't be told."""
    if lifetime.idle is None or work.running or work.unknown or work.waiting:
        return None
    return max(filter(None, (known.idle_since or now, work.last, known.woken)))


def outside_since(lifetime: Lifetime, now: datetime) -> datetime | None:
    """Since when it is outside of the working hours; None within them, and where there are none."""
    if lifetime.hours is None:
        return None
    spans = _spans(lifetime.hours, lifetime.zone, now)
    if any(begin <= now < end for begin, end in spans):
        return None
    return max(end for _, end in spans if end <= now)


def next_begin(lifetime: Lifetime, now: datetime) -> datetime | None:
    """When working hours begin the next time; None where there are none."""
    if lifetime.hours is None:
        return None
    return min(begin for begin, _ in _spans(lifetime.hours, lifetime.zone, now) if begin > now)


def _spans(hours: Hours, zone: str, now: datetime) -> list[tuple[datetime, datetime]]:
    """The working hours of the week before a moment, and of the week after it, in UTC.

    Times are those of the zone's clocks: where they are put forward or back in between, the span is shorter or longer.
    """
    where = ZoneInfo(zone)
    today = now.astimezone(where).date()
    days = (today + timedelta(days=offset) for offset in range(-WEEK - 1, WEEK + 2))
    return [
        (
            moment(day, hours.begin, where),
            moment(day + timedelta(days=hours.end <= hours.begin), hours.end, where),
        )
        for day in days
        if day.weekday() in hours.days
    ]


@dataclass(frozen=True)
class Owner:
    """Who last set `spec.suspend` of a RayCluster.

    Attributes:
        manager: the field manager; "" where nobody did.
        time: when.
    """

    manager: str = ""
    time: datetime | None = None


KEEPER = "berth-keeper"
"""The keeper's field manager: it owns `spec.suspend` of what it has suspended, and its own notes."""


def known_of(cluster: Mapping[str, object]) -> Known:
    """What a RayCluster's object tells of its berth."""
    metadata, spec = _mapping(cluster["metadata"]), _mapping(cluster["spec"])
    annotations = _mapping(metadata.get("annotations"))
    owner = _owner(metadata)
    suspended = bool(spec.get("suspend"))
    noted = annotations.get(IDLE_SINCE)
    return Known(
        created=datetime.fromisoformat(str(metadata["creationTimestamp"])),
        suspended=suspended,
        suspended_by=str(annotations.get(SUSPENDED_BY, "")) if suspended and owner.manager == KEEPER else "",
        woken=owner.time if not suspended and owner.manager != KEEPER else None,
        idle_since=datetime.fromisoformat(str(noted)) if noted else None,
    )


def _owner(metadata: Mapping[str, object]) -> Owner:
    """By the API server's own record: whoever wakes or suspends a berth, by whatever program, is seen."""
    entries = metadata.get("managedFields")
    for entry in map(_mapping, entries if isinstance(entries, list) else []):
        if "f:suspend" in _mapping(_mapping(entry.get("fieldsV1")).get("f:spec")):
            return Owner(str(entry.get("manager")), datetime.fromisoformat(str(entry["time"])))
    return Owner()


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def stamp(moment: datetime) -> str:
    """As the API server writes a moment: 2026-01-31T12:00:00Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
