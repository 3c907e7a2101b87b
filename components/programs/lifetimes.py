"""Lifecycle of a berth in annotations of its namespace, which the keeper reads.

This file also runs in the keeper's pod, and imports only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

EXPIRES = "berth/expires"
HOURS = "berth/working-hours"
IDLE = "berth/idle"
ZONE = "berth/zone"
GRACE = "berth/grace"
DELETE_AFTER = "berth/delete-after"
SETTINGS = (EXPIRES, HOURS, IDLE, ZONE, GRACE, DELETE_AFTER)
"""Annotations of a berth's namespace that come from its settings; no tenant may write them."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"(\d+)([smhd])", re.ASCII)
"""Pattern of a duration."""

_TIME = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
WEEK = 7
"""Days of a week."""

_LAST_HOUR = 24

# Longer ones overflow Python's calendar, at the end of the year 9999.
_LONGEST_DURATION = 100 * 365 * _SECONDS["d"]
_MOST_DIGITS = len(str(_LONGEST_DURATION))
_LAST_DAY = date(2199, 12, 31)


@dataclass(frozen=True)
class Hours:
    """Working hours."""

    days: frozenset[int]
    """Days on which the hours begin; Monday is 0."""
    begin: int
    """Minute of the day at which the hours begin."""
    end: int
    """Minute at which the hours end, 1440 for midnight; on the next day unless after `begin`."""


@dataclass(frozen=True)
class Lifetime:
    """Lifecycle of a berth."""

    expires: date | timedelta | None = None
    """Last day, or lifetime from creation."""
    hours: Hours | None = None
    """Working hours, outside of which the berth is suspended."""
    idle: timedelta | None = None
    """Time without work after which the berth is suspended."""
    grace: timedelta | None = None
    """Longest time that running work delays a suspension; None for no limit."""
    delete_after: timedelta | None = None
    """Time from expiry to deletion."""
    zone: str = "UTC"
    """Time zone of the last day and of the hours."""

    @property
    def any(self) -> bool:
        """Whether the keeper has anything to do."""
        return bool(self.expires or self.hours or self.idle)

    def expires_at(self, created: datetime) -> datetime | None:
        """Return when a berth expires: at the end of its last day, or of its lifetime."""
        if isinstance(self.expires, timedelta):
            return created + self.expires
        if self.expires is None:
            return None
        return moment(self.expires + timedelta(days=1), 0, ZoneInfo(self.zone))


def moment(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """Return a time of day by a zone's clocks, in UTC; a skipped time counts from midnight."""
    days, rest = divmod(minutes, _LAST_HOUR * 60)
    local = datetime.combine(day + timedelta(days=days), time(*divmod(rest, 60)), zone)
    return local.astimezone(UTC)


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as 90s, 10m, 2h or 7d.

    Raises:
        ValueError: the text is not a duration, or it is zero, or longer than 100 years.
    """
    match = DURATION.fullmatch(text)
    if not match or not match[1].strip("0"):
        raise ValueError(f"{text!r} is not a duration; write {_duration_like(text)}")
    # Python refuses to read numbers of thousands of digits.
    seconds = int(match[1][-_MOST_DIGITS:]) * _SECONDS[match[2]]
    if len(match[1]) > _MOST_DIGITS or seconds > _LONGEST_DURATION:
        longest = _LONGEST_DURATION // _SECONDS["d"]
        raise ValueError(
            f"{text[:40]!r} is longer than 100 years; the longest duration is {longest}d"
        )
    return seconds


def _duration_like(text: str) -> str:
    """Return the duration that a text likely means: `2h` for 2 hours, 14d for 2w; else examples."""
    if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        return f"{text}s, {text}m, {text}h or {text}d"
    likely = re.fullmatch(r"([1-9]\d{0,5})\s*([smhdw])[a-z]*", text.strip().lower(), re.ASCII)
    if not likely:
        return "for example 90s, 10m, 2h or 7d"
    number, unit = likely.groups()
    return f"{int(number) * WEEK}d" if unit == "w" else f"{number}{unit}"


def parse_expiry(text: str) -> date | timedelta:
    """Return a last day, 2026-12-31, or a duration.

    Raises:
        ValueError: the text is neither, or too far away.
    """
    if DURATION.fullmatch(text):
        return timedelta(seconds=parse_duration(text))
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a day nor a duration; write the last day, 2026-12-31, or the"
            " lifetime, 14d"
        ) from None
    if day > _LAST_DAY:
        raise ValueError(f"{text!r} is after {_LAST_DAY}, the last day that a berth can have")
    return day


def parse_time(text: str) -> int:
    """Return the minutes of the day at 08:00, or at 24:00 for the end of the day.

    Raises:
        ValueError: the text is not a time of day.
    """
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match else -1
    if not match or int(match[2]) > 59 or minutes > _LAST_HOUR * 60:  # noqa: PLR2004 - minutes of an hour
        raise ValueError(f"{text!r} is not a time of day; write for example 08:00 or 20:00")
    return minutes


def parse_days(text: str) -> frozenset[int]:
    """Return days of the week: mon-fri, or mon,wed,fri, or sun-thu.

    Raises:
        ValueError: the text has other words.
    """
    days: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.strip().partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise ValueError(
                f"{text!r} is not a list of days of the week; write for example mon-fri, or"
                " mon,wed,fri"
            )
        begin = DAYS.index(first)
        end = DAYS.index(last or first)
        if end < begin:
            end += WEEK
        days |= {day % WEEK for day in range(begin, end + 1)}
    return frozenset(days)


def parse_hours(text: str) -> Hours:
    """Return working hours from the annotation: `mon-fri 08:00-20:00`.

    Raises:
        ValueError: the text is malformed.
    """
    days, _, times = text.partition(" ")
    begin, _, end = times.partition("-")
    return Hours(parse_days(days), parse_time(begin), parse_time(end))


def settled(namespace: Mapping[str, str], cluster: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of a berth that come from its settings.

    Args:
        namespace: annotations of its namespace.
        cluster: annotations of its RayCluster, which count where a stack of an older version of
            berth has written none on the namespace.
    """
    written = {key: value for key, value in namespace.items() if key in SETTINGS}
    return written or {key: value for key, value in cluster.items() if key in SETTINGS}


def lifetime_of(annotations: Mapping[str, str]) -> Lifetime:
    """Return the lifecycle in the annotations of a berth.

    Raises:
        ValueError: an annotation is malformed, or the time zone unknown; the message names it.
    """
    zone = annotations.get(ZONE, "UTC")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{ZONE}: there is no time zone {zone!r}") from None
    return Lifetime(
        expires=parse_expiry(annotations[EXPIRES]) if EXPIRES in annotations else None,
        hours=parse_hours(annotations[HOURS]) if HOURS in annotations else None,
        idle=_time_span(annotations.get(IDLE)),
        grace=_time_span(annotations.get(GRACE)),
        delete_after=_time_span(annotations.get(DELETE_AFTER)),
        zone=zone,
    )


def _time_span(duration: str | None) -> timedelta | None:
    return None if duration is None else timedelta(seconds=parse_duration(duration))
