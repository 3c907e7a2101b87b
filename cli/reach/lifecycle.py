"""Sentences and dates about a berth's lifecycle."""

from datetime import datetime
from zoneinfo import ZoneInfo

from berth.components.core import fast_yaml
from berth.components.lifecycle import Life

EXTEND = "give it a later `lifecycle.expires` and run pulumi up"

REMARKS = fast_yaml.load_beside(__file__, "remarks.yaml")


def sentences(name: str, life: Life) -> list[str]:
    """Return remarks on a berth's lifecycle; none for a berth that is awake and stays so."""
    texts = [REMARKS["suspended_by"].get(life.suspended_by)]
    texts += [text for key, text in REMARKS["lifecycle"].items() if getattr(life, key)]
    facts = {
        "until": f" until {moment(life.until, life.zone)}" if life.until else "",
        "unused": f" for {life.idle}" if life.idle else "",
        "expires": moment(life.expires, life.zone),
        "delete_due": moment(life.delete_due, life.zone),
    }
    return [text.format(name=name, life=life, extend=EXTEND, **facts) for text in texts if text]


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
