"""What people are told of a berth's life: how old it is, when it ends, and why it is suspended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from berth.components.cluster.api import Object
from berth.components.programs.decision import (
    DELETE_DUE,
    EXPIRED,
    HELD_UP,
    OUTSIDE_HOURS,
    UNUSED,
    known_of,
    next_begin,
    stamp,
)
from berth.components.programs.lifetimes import IDLE, SETTINGS, Lifetime, lifetime_of

EXTEND = "give it a later `lifecycle.expires` and run pulumi up"
"""What mends an expired berth."""

PERSON = "person"
"""Who suspended a berth that the keeper did not suspend."""


@dataclass(frozen=True)
class Life:
    """A berth's life. Moments are as the API server writes them, "" for none.

    Attributes:
        created: when it was made.
        expires: when it expires.
        suspended_by: `hours`, `idle` or `expired` by the keeper, or `person`; "" where it is awake.
        until: when the keeper wakes it.
        held_up: why the keeper does not suspend it yet, though that is due.
        delete_due: since when it is due to be deleted.
        zone: the time zone that its settings speak of.
        idle: its `idle`, "" for none.
        problem: what of its lifecycle can't be read.
    """

    created: str
    expires: str = ""
    suspended_by: str = ""
    until: str = ""
    held_up: str = ""
    delete_due: str = ""
    zone: str = "UTC"
    idle: str = ""
    problem: str = ""


def life_of(cluster: Object, now: datetime | None = None) -> Life:
    """The life that a RayCluster's object tells of.

    Args:
        cluster: the RayCluster.
        now: with a time zone; the moment that it is called at without.
    """
    metadata = cluster["metadata"]
    if not metadata.get("creationTimestamp"):
        return Life("")
    annotations = metadata.get("annotations") or {}
    known = known_of(cluster)
    problem, lifetime = "", Lifetime()
    try:
        lifetime = lifetime_of(annotations)
    except ValueError as error:
        problem = str(error)
    expires = lifetime.expires_at(known.created)
    until = next_begin(lifetime, now or datetime.now(UTC)) if known.suspended_by == OUTSIDE_HOURS else None
    return Life(
        created=str(metadata["creationTimestamp"]),
        expires=stamp(expires) if expires else "",
        suspended_by=(known.suspended_by or PERSON) if known.suspended else "",
        until=stamp(until) if until else "",
        held_up=annotations.get(HELD_UP, ""),
        delete_due=annotations.get(DELETE_DUE, ""),
        zone=lifetime.zone if any(key in annotations for key in SETTINGS) else "UTC",
        idle=annotations.get(IDLE, ""),
        problem=problem,
    )


def expired(life: Life, now: datetime) -> bool:
    """Whether a berth has expired."""
    return bool(life.expires) and now >= datetime.fromisoformat(life.expires)


def sentences(name: str, life: Life) -> list[str]:
    """What is to be said of a berth's life beside its age; nothing of one that is awake and goes on being so."""
    wake = f"berth wake {name}"
    until = f" until {moment(life.until, life.zone)}" if life.until else ""
    unused = f" for {life.idle}" if life.idle else ""
    why = {
        OUTSIDE_HOURS: f"is suspended outside of its working hours{until}; back at once with: {wake}",
        UNUSED: f"is suspended, as nothing ran on it{unused}; back with: {wake}",
        EXPIRED: f"is suspended, as it expired on {moment(life.expires, life.zone)}; {EXTEND}, then: {wake}",
        PERSON: f"was suspended by hand, and stays so; back with: {wake}",
    }
    said = [f"{name} {why[life.suspended_by]}"] if life.suspended_by in why else []
    if life.held_up:
        said.append(f"{name} is to be suspended: {life.held_up}")
    if life.delete_due:
        said.append(
            f"{name} is due to be deleted since {moment(life.delete_due, life.zone)}: berth engineer remove {name}, or take its"
            " stack down with pulumi destroy"
        )
    if life.problem:
        said.append(f"{name} has a lifecycle that can't be read: {life.problem}")
    return said


def moment(stamped: str, zone: str) -> str:
    """A moment for people, by their clocks: `Mon 2026-11-23 08:00 CET`."""
    try:
        return f"{datetime.fromisoformat(stamped).astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"
    except (ValueError, KeyError, OSError):
        return stamped


def age(since: str, now: datetime) -> str:
    """`3 d`, `2 h`, `5 m`, `40 s`; "" where it is not known.

    Args:
        since: a time as the API server writes it.
        now: with its time zone.
    """
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except ValueError:
        return ""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{max(seconds, 0)} s"
