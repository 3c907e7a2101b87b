"""Sentences and dates about a berth's lifecycle."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from berth.components.lifecycle import PERSON, Life
from berth.components.programs.decision import EXPIRED, OUTSIDE_HOURS, UNUSED

EXTEND = "give it a later `lifecycle.expires` and run pulumi up"


def sentences(name: str, life: Life) -> list[str]:
    """Return remarks on a berth's lifecycle; none for a berth that is awake and stays so."""
    wake = f"berth wake {name}"
    until = f" until {moment(life.until, life.zone)}" if life.until else ""
    unused = f" for {life.idle}" if life.idle else ""
    reasons = {
        OUTSIDE_HOURS: f"is suspended outside of its working hours{until}; back at once with: {wake}",
        UNUSED: f"is suspended, as nothing ran on it{unused}; back with: {wake}",
        EXPIRED: f"is suspended, as it expired on {moment(life.expires, life.zone)}; {EXTEND}, then: {wake}",
        PERSON: f"was suspended manually, until you wake it: {wake}",
    }
    found = [f"{name} {reasons[life.suspended_by]}"] if life.suspended_by in reasons else []
    if life.held_up:
        found.append(f"{name} is to be suspended: {life.held_up}")
    if life.delete_due:
        found.append(
            f"{name} is due to be deleted since {moment(life.delete_due, life.zone)}: berth engineer remove {name}, or"
            " destroy its stack with pulumi destroy"
        )
    if life.problem:
        found.append(f"{name} has a lifecycle that cannot be read: {life.problem}")
    return found


def moment(stamp: str, zone: str) -> str:
    """Return a moment in a time zone, for people: `Mon 2026-11-23 08:00 CET`."""
    try:
        return f"{datetime.fromisoformat(stamp).astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"
    except (ValueError, KeyError, OSError):
        return stamp


def age(since: str, now: datetime) -> str:
    """Return the time since a moment: `3 d`, `2 h`, `5 m`, `40 s`; "" for an unknown moment."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except ValueError:
        return ""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{max(seconds, 0)} s"
