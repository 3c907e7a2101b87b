"""Settings of a berth's lifecycle."""

from __future__ import annotations

import functools
import zoneinfo
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from berth.components.core.settings import DefaultedSettings, Settings
from berth.components.core.types import NonEmpty, iso_time, number_to_text
from berth.components.programs.lifetimes import (
    DELETE_AFTER,
    EXPIRES,
    GRACE,
    HOURS,
    IDLE,
    ZONE,
    parse_days,
    parse_duration,
    parse_expiry,
    parse_time,
)

# Words that cancel a value of the defaults.
NEVER = "never"
ALWAYS = "always"
UNLIMITED = "unlimited"


def _check_expiry(text: str) -> str:
    if text != NEVER:
        parse_expiry(text)
    return text


def _duration_or(word: str) -> AfterValidator:
    """Return the validator of a duration or the word for none."""

    def check(text: str) -> str:
        if text != word:
            try:
                parse_duration(text)
            except ValueError as error:
                raise ValueError(f"{error}, or {word}") from None
        return text

    return AfterValidator(check)


def _day_to_text(value: Any) -> Any:
    """Return a date as text: YAML reads `2026-12-31` as a date, the engine may add a time."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    value = number_to_text(iso_time(value))
    return value.removesuffix("T00:00:00Z") if isinstance(value, str) else value


def _time_to_text(value: Any) -> Any:
    """Return a time as text: YAML 1.1 reads `20:00` as a number of base 60."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "{:02d}:{:02d}".format(*divmod(value, 60))
    return value


def _check_time(text: str) -> str:
    return "{:02d}:{:02d}".format(*divmod(parse_time(text), 60))


def _check_days(text: str) -> str:
    parse_days(text)
    return text.lower().replace(" ", "")


@functools.cache
def _zones() -> frozenset[str]:
    """Return this machine's time zones, for which Python reads the whole folder of zones."""
    return frozenset(zoneinfo.available_timezones())


def _check_zone(text: str) -> str:
    zones = _zones()
    # Some machines have no list of zones; the keeper's image has one.
    if zones and text not in zones:
        raise ValueError(
            f"there is no time zone {text!r}; write for example Europe/Berlin, America/New_York"
            " or UTC"
        )
    return text


TimeOfDay = Annotated[
    str,
    BeforeValidator(_time_to_text),
    AfterValidator(_check_time),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,2}:\d{2}$"}),
]
"""Time of day such as 08:00; 24:00 is the end of the day."""

Expiry = Annotated[
    str,
    BeforeValidator(_day_to_text),
    AfterValidator(_check_expiry),
    WithJsonSchema({"type": "string", "pattern": r"^(\d{4}-\d{2}-\d{2}|\d+[smhd]|never)$"}),
]
"""Last day, such as 2026-12-31, a duration, or never."""

DurationOrNever = Annotated[
    str,
    BeforeValidator(number_to_text),
    _duration_or(NEVER),
    Field(json_schema_extra={"pattern": r"^(\d+[smhd]|never)$"}),
]
"""Duration such as 2h, or never."""

DurationOrUnlimited = Annotated[
    str,
    BeforeValidator(number_to_text),
    _duration_or(UNLIMITED),
    Field(json_schema_extra={"pattern": r"^(\d+[smhd]|unlimited)$"}),
]
"""Duration such as 2h, or unlimited."""

ZoneName = Annotated[NonEmpty, AfterValidator(_check_zone)]
"""Name of a time zone, such as Europe/Berlin."""


class WorkingHours(Settings):
    """Working hours of a berth."""

    days: Annotated[str, AfterValidator(_check_days), Field(examples=["mon,wed,fri"])] = "mon-fri"
    """Days on which the hours begin: mon-fri, or mon,wed,fri."""
    begin: Annotated[TimeOfDay, Field(examples=["08:00"], alias="from")]
    """Begin of the hours: "08:00"."""
    end: Annotated[TimeOfDay, Field(examples=["20:00"], alias="to")]
    """End of the hours: "20:00"; on the next day if it is before `from`."""

    @model_validator(mode="after")
    def _some_time_between(self) -> WorkingHours:
        if parse_time(self.begin) % (24 * 60) == parse_time(self.end) % (24 * 60):
            raise ValueError(
                f"begin and end at {self.begin}, which leaves no time outside of them; give another"
                " time, or `hours: always`"
            )
        return self


def _which(value: Any) -> str:
    """Return the tag of the form that is meant, so that the error is about that form."""
    return "always" if value == ALWAYS else "working"


def _hours(value: Any) -> Any:
    """Refuse what is neither a mapping nor the word."""
    if value != ALWAYS and not isinstance(value, (dict, WorkingHours)):
        raise ValueError(
            f'{value!r} is not working hours; write {{from: "08:00", to: "20:00"}}, or always'
        )
    return value


WorkingHoursOrAlways = Annotated[
    Annotated[WorkingHours, Tag("working")] | Annotated[Literal["always"], Tag("always")],
    Discriminator(_which),
    BeforeValidator(_hours),
]
"""Working hours, or always."""


class LifecycleShape(DefaultedSettings):
    """Automatic suspension of a berth, and its expiry, as written in YAML.

    Suspension deletes head and workers; settings, Service and token stay, and `berth wake` brings
    the berth back. A suspension waits for running jobs and attached sessions.
    """

    expires: Annotated[Expiry | None, Field(examples=["14d", "2031-12-31"])] = None
    """Last day of the berth, 2026-12-31, or its lifetime from creation, 14d. Default: never."""
    hours: Annotated[
        WorkingHoursOrAlways | None, Field(examples=[{"from": "08:00", "to": "20:00"}])
    ] = None
    """Working hours: the berth is suspended when they end, and woken when they begin. Default:
    always."""
    idle: Annotated[DurationOrNever | None, Field(examples=["2h"])] = None
    """Time without a job, session or actor after which the berth is suspended. Default: never."""
    zone: Annotated[ZoneName, Field(examples=["Europe/Berlin"])] = "UTC"
    """Time zone of `hours` and of the end of the last day."""
    grace: Annotated[DurationOrUnlimited | None, Field(examples=["1h"])] = None
    """Longest time that running work delays a suspension by `expires` or `hours`. Default:
    unlimited."""
    delete_after: Annotated[DurationOrNever | None, Field(examples=["7d"])] = None
    """Time after expiry at which the berth is marked as due for deletion. A person deletes it.
    Default: never."""


class Lifecycle(LifecycleShape):
    """Lifecycle of a berth, complete: None in place of `never`, `always` and `unlimited`."""

    hours: WorkingHours | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_words(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        words = (NEVER, ALWAYS, UNLIMITED)
        return {key: value for key, value in written.items() if value not in words}

    @property
    def any(self) -> bool:
        """Whether the keeper has anything to do."""
        return bool(self.expires or self.hours or self.idle)

    def annotations(self) -> dict[str, str]:
        """Return the annotations that the keeper reads; none if it has nothing to do."""
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


def complete_lifecycle(shape: LifecycleShape) -> Lifecycle:
    """Return the complete lifecycle of a shape."""
    return Lifecycle.model_validate(shape.written_values())
