"""Moments and ages in words."""

from datetime import datetime
from zoneinfo import ZoneInfo


def moment_in_zone(stamp: str, zone: str) -> str:
    """Return a moment in a time zone, for people: `Mon 2026-11-23 08:00 CET`."""
    try:
        return f"{datetime.fromisoformat(stamp).astimezone(ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"
    except (ValueError, KeyError, OSError):
        return stamp


def age_in_words(since: str, now: datetime) -> str:
    """Return the time since a moment: `3 d`, `2 h`, `5 m`, `40 s`; "" for an unknown moment."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except ValueError:
        return ""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{max(seconds, 0)} s"
