"""When a berth is suspended by itself, and how long it lives."""

from __future__ import annotations

import zoneinfo
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from berth.components.core.problems import Path, Problem
from berth.components.core.settings import Settings
from berth.components.core.types import Duration, NonEmpty, parse_duration
from berth.components.programs.lifetimes import (
    DELETE_AFTER,
    EXPIRES,
    GRACE,
    HOURS,
    IDLE,
    ZONE,
    parse_days,
    parse_expiry,
    parse_time,
)

NEVER, ALWAYS, UNLIMITED = "never", "always", "unlimited"
"""Words that take back what the defaults say."""

_SHORTEST_EVERY, _LONGEST_EVERY = 60, 1800


def _check_expiry(text: str) -> str:
    if text != NEVER:
        parse_expiry(text)
    return text


def _duration_or(word: str) -> AfterValidator:
    """A duration, or the word that means none."""

    def check(text: str) -> str:
        if text != word:
            try:
                parse_duration(text)
            except ValueError as error:
                raise ValueError(f"{error}, or {word}") from None
        return text

    return AfterValidator(check)


def _day_to_text(value: Any) -> Any:
    """YAML reads `2026-12-31` as a date, and the engine may hand it on with the time of day that it has not."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return value.removesuffix("T00:00:00Z") if isinstance(value, str) else value


def _time_to_text(value: Any) -> Any:
    """YAML 1.1 reads `20:00` as a number of base 60."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "{:02d}:{:02d}".format(*divmod(value, 60))
    return value


def _check_time(text: str) -> str:
    return "{:02d}:{:02d}".format(*divmod(parse_time(text), 60))


def _check_days(text: str) -> str:
    parse_days(text)
    return text.lower().replace(" ", "")


def _check_zone(text: str) -> str:
    known = zoneinfo.available_timezones()
    # A machine without a list of zones can't tell; the keeper's image has one.
    if known and text not in known:
        raise ValueError(f"there is no time zone {text!r}; write for example Europe/Berlin, America/New_York or UTC")
    return text


def _check_every(text: str) -> str:
    seconds = parse_duration(text)
    if seconds % 60 or not _SHORTEST_EVERY <= seconds <= _LONGEST_EVERY or 60 % (seconds // 60):
        raise ValueError(f"{text!r} can't be: whole minutes that divide an hour, from 1m to 30m, for example 5m")
    return text


TimeOfDay = Annotated[
    str,
    BeforeValidator(_time_to_text),
    AfterValidator(_check_time),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,2}:\d{2}$"}),
]
"""A time of day such as 08:00; 24:00 is its end."""

Expiry = Annotated[
    str,
    BeforeValidator(_day_to_text),
    AfterValidator(_check_expiry),
    WithJsonSchema({"type": "string", "pattern": r"^(\d{4}-\d{2}-\d{2}|\d+[smhd]|never)$"}),
]
"""The last day, such as 2026-12-31, a time span, or never."""

DurationOrNever = Annotated[str, _duration_or(NEVER), Field(json_schema_extra={"pattern": r"^(\d+[smhd]|never)$"})]
"""A time span such as 2h, or never."""

DurationOrUnlimited = Annotated[
    str, _duration_or(UNLIMITED), Field(json_schema_extra={"pattern": r"^(\d+[smhd]|unlimited)$"})
]
"""A time span such as 2h, or unlimited."""

ZoneName = Annotated[NonEmpty, AfterValidator(_check_zone)]
"""A time zone by its name, such as Europe/Berlin."""


class WorkingHours(Settings):
    """When a berth is there."""

    days: Annotated[str, AfterValidator(_check_days), Field(examples=["mon-fri"])] = "mon-fri"
    """Days on which the hours begin: mon-fri, or mon,wed,fri."""
    begin: Annotated[TimeOfDay, Field(alias="from")]
    """When they begin: "08:00"."""
    end: Annotated[TimeOfDay, Field(alias="to")]
    """When they end: "20:00"; before `from`, on the next day."""

    @model_validator(mode="after")
    def _some_time_between(self) -> WorkingHours:
        if parse_time(self.begin) % (24 * 60) == parse_time(self.end) % (24 * 60):
            raise ValueError(
                f"begin and end at {self.begin}, so that there is no night between them; give another time, or `hours: always`"
            )
        return self


def _which(value: Any) -> str:
    """Which of the two is meant, so that an error speaks of that one."""
    return "working" if isinstance(value, (dict, WorkingHours)) else "always"


WorkingHoursOrAlways = Annotated[
    Annotated[WorkingHours, Tag("working")] | Annotated[Literal["always"], Tag("always")], Discriminator(_which)
]
"""Working hours, or always."""


class LifecycleShape(Settings):
    """When a berth is suspended by itself: head and workers go, settings, Service and token stay, and `berth wake` brings it back.

    Running jobs and attached sessions are waited for.
    """

    expires: Expiry | None = None
    """Its last day, 2026-12-31, or how long it lives from when it was made, 14d. Default: never."""
    hours: WorkingHoursOrAlways | None = None
    """Working hours. It is suspended when they end, and woken when they begin. Default: always."""
    idle: DurationOrNever | None = None
    """It is suspended after so long without a job, a session or an actor. Default: never."""
    zone: ZoneName | None = None
    """Time zone of `hours` and of the end of its last day. Default: UTC."""
    grace: DurationOrUnlimited | None = None
    """How long running work holds up a suspension by `expires` or `hours` that is due. Default: unlimited, until it ends by itself."""
    delete_after: DurationOrNever | None = None
    """So long after it expired it is marked as due to be deleted. Who deletes it is a person. Default: never."""


class Lifecycle(Settings):
    """A berth's lifecycle, complete."""

    expires: Expiry | None = None
    hours: WorkingHours | None = None
    idle: Duration | None = None
    zone: str = "UTC"
    grace: Duration | None = None
    delete_after: Duration | None = None

    @property
    def any(self) -> bool:
        """There is something that the keeper does."""
        return bool(self.expires or self.hours or self.idle)

    def annotations(self) -> dict[str, str]:
        """What the keeper reads of it on the RayCluster; nothing where there is nothing to do."""
        if not self.any:
            return {}
        hours = f"{self.hours.days} {self.hours.begin}-{self.hours.end}" if self.hours else None
        written = {
            EXPIRES: self.expires,
            HOURS: hours,
            IDLE: self.idle,
            ZONE: self.zone if self.hours or self.expires else None,
            GRACE: self.grace,
            DELETE_AFTER: self.delete_after if self.expires else None,
        }
        return {key: value for key, value in written.items() if value is not None}


def complete(shape: LifecycleShape) -> Lifecycle:
    """The lifecycle that a shape means."""
    given = {
        key: value
        for key, value in shape.model_dump(exclude_none=True).items()
        if value not in (NEVER, ALWAYS, UNLIMITED)
    }
    return Lifecycle.model_validate(given)


class KeeperSettings(Settings):
    """The keeper: what suspends and wakes berths by their lifecycle."""

    every: Annotated[Duration, AfterValidator(_check_every)] = "5m"
    """How often it looks: whole minutes that divide an hour, from 1m to 30m."""
    image: NonEmpty | None = None
    """An image with Python 3.11 or newer. Default: the berths' own, of `defaults`."""

    @property
    def schedule(self) -> str:
        """As a CronJob writes it."""
        return f"*/{parse_duration(self.every) // 60} * * * *"


def lifecycle_problems(written: LifecycleShape, lifecycle: Lifecycle, path: Path) -> list[Problem]:
    """What is said of a lifecycle but does nothing.

    Args:
        written: what is said of this very RayCluster, without the defaults.
        lifecycle: complete.
        path: of the RayCluster's settings.
    """
    problems = []
    if written.delete_after not in (None, NEVER) and not lifecycle.expires:
        message = "counts from when the berth expires, and it never does; give it `expires`, for example 30d, or take deleteAfter out"
        problems.append(Problem((*path, "lifecycle", "deleteAfter"), message))
    if written.grace not in (None, UNLIMITED) and not (lifecycle.expires or lifecycle.hours):
        message = "is for `expires` and `hours`, and the berth has neither: by `idle` only what runs nothing is suspended; take grace out"
        problems.append(Problem((*path, "lifecycle", "grace"), message))
    return problems
