"""A berth's lifecycle as its RayCluster's annotations have it: written from the settings, read by the keeper.

This file runs in the keeper's pod too, and imports nothing but Python's own library.
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
"""Annotations of a RayCluster that its settings make."""

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)([smhd])", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
WEEK = 7
"""Days of one."""

_LAST_HOUR = 24


@dataclass(frozen=True)
class Hours:
    """Working hours.

    Attributes:
        days: days on which they begin, Monday is 0.
        begin: minutes of the day at which they begin.
        end: minutes of the day at which they end, 1440 for midnight; of the next day if it is not after `begin`.
    """

    days: frozenset[int]
    begin: int
    end: int


@dataclass(frozen=True)
class Lifetime:
    """What a berth's settings say of its life; all of them may say nothing.

    Attributes:
        expires: its last day, or how long it lives from when it was made.
        hours: outside of these it is suspended.
        idle: it is suspended after so long without work.
        grace: for so long running work holds up a suspension that is due; None for as long as it runs.
        delete_after: so long after it expired it is due to be deleted.
        zone: the time zone of its last day and of its hours.
    """

    expires: date | timedelta | None = None
    hours: Hours | None = None
    idle: timedelta | None = None
    grace: timedelta | None = None
    delete_after: timedelta | None = None
    zone: str = "UTC"

    @property
    def any(self) -> bool:
        """There is something that the keeper does."""
        return bool(self.expires or self.hours or self.idle)

    def expires_at(self, created: datetime) -> datetime | None:
        """When a berth that was made then expires: at the end of its last day, or when its time is over."""
        if isinstance(self.expires, timedelta):
            return created + self.expires
        if self.expires is None:
            return None
        return moment(self.expires + timedelta(days=1), 0, ZoneInfo(self.zone))


def moment(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """A moment of a day by the zone's clocks, in UTC. One that the clocks leave out is as long after midnight as it would be."""
    days, rest = divmod(minutes, _LAST_HOUR * 60)
    local = datetime.combine(day + timedelta(days=days), time(*divmod(rest, 60)), zone)
    return local.astimezone(UTC)


def parse_duration(text: str) -> timedelta:
    """A duration such as 90s, 10m, 2h or 7d.

    Raises:
        ValueError: it is none.
    """
    match = _DURATION.fullmatch(text)
    if not match or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not a duration; write for example 90s, 10m, 2h or 7d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def parse_expiry(text: str) -> date | timedelta:
    """A last day, 2026-12-31, or a duration.

    Raises:
        ValueError: it is neither.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a day nor a duration; write the last day, 2026-12-31, or how long from when it is made, 14d"
        ) from None


def parse_time(text: str) -> int:
    """Minutes of the day: 08:00, or 24:00 for its end.

    Raises:
        ValueError: it is no time.
    """
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * 60 + int(match[2]) if match else -1
    if not match or int(match[2]) > 59 or minutes > _LAST_HOUR * 60:  # noqa: PLR2004 - minutes of an hour
        raise ValueError(f"{text!r} is no time of day; write for example 08:00 or 20:00")
    return minutes


def parse_days(text: str) -> frozenset[int]:
    """Days of the week: mon-fri, or mon,wed,fri, or sun-thu.

    Raises:
        ValueError: it has anything else in it.
    """
    days: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.strip().partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise ValueError(f"{text!r} are no days of the week; write for example mon-fri, or mon,wed,fri")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        days |= {day % WEEK for day in range(begin, end + 1 if end >= begin else end + 1 + WEEK)}
    return frozenset(days)


def parse_hours(text: str) -> Hours:
    """Working hours as the annotation has them: `mon-fri 08:00-20:00`.

    Raises:
        ValueError: they are none.
    """
    days, _, times = text.partition(" ")
    begin, _, end = times.partition("-")
    return Hours(parse_days(days), parse_time(begin), parse_time(end))


def lifetime_of(annotations: Mapping[str, str]) -> Lifetime:
    """The lifecycle that a RayCluster's annotations tell.

    Raises:
        ValueError: one of them can't be read, or there is no such time zone; the text names it.
    """

    def read(key: str) -> timedelta | None:
        return parse_duration(annotations[key]) if key in annotations else None

    zone = annotations.get(ZONE, "UTC")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{ZONE}: there is no time zone {zone!r}") from None
    return Lifetime(
        expires=parse_expiry(annotations[EXPIRES]) if EXPIRES in annotations else None,
        hours=parse_hours(annotations[HOURS]) if HOURS in annotations else None,
        idle=read(IDLE),
        grace=read(GRACE),
        delete_after=read(DELETE_AFTER),
        zone=zone,
    )
