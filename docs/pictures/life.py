"""Picture of a berth's life: its states, and what leads from one to the next.

The keeper's own decisions, hour by hour, give the causes of suspensions and the times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from berth.components.lifecycle import LifecycleShape, complete_lifecycle
from berth.components.programs.decision import (
    EXPIRED,
    OUTSIDE_HOURS,
    UNUSED,
    BerthState,
    Work,
    decision_for,
)
from berth.components.programs.lifetimes import Lifetime, lifetime_of
from docs.pictures.svg import LARGE, SMALL, WIDTH, Area, Picture, Style

SAMPLE = {
    "hours": {"from": "08:00", "to": "20:00"},
    "idle": "2h",
    "expires": "14d",
    "grace": "4h",
    "deleteAfter": "30d",
}
"""Lifecycle that the picture is drawn for."""

_BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_DAYS = 60
_IDLE = Work()
_BUSY = Work(running=("job",))
_EDGE = 14
_PAD = 12
_GAP = 10


@dataclass(frozen=True)
class Suspension:
    """Suspension of a berth for one reason, as the keeper decides it.

    Attributes:
        at: moment at which an idle berth is suspended.
        delayed: how much later a busy one is suspended; None for never.
        woken: moment at which the keeper wakes it; None for never.
        again: how long after a person's wake an unused one is suspended again; None for never.
    """

    at: datetime
    delayed: timedelta | None
    woken: datetime | None
    again: timedelta | None


def lifetime_with(*keys: str) -> Lifetime:
    """Return the sample's lifecycle with some of its settings, as the keeper reads it."""
    shape = LifecycleShape.model_validate({key: SAMPLE[key] for key in keys})
    return lifetime_of(complete_lifecycle(shape).annotations())


def suspended_at(
    lifetime: Lifetime, known: BerthState, work: Work, begin: datetime
) -> datetime | None:
    """Return when the keeper suspends an awake berth; None if it does not."""
    for now in _hours(begin):
        decision = decision_for(lifetime, known, work, now)
        if decision.suspend:
            return now
        known = replace(known, idle_since=decision.idle_since)
    return None


def suspension(reason: str, *keys: str) -> Suspension:
    """Return the suspension of a berth that has only the named settings.

    Raises:
        ValueError: the keeper does not suspend it for this reason.
    """
    lifetime = lifetime_with(*keys)
    known = BerthState(_BEGIN)
    at, busy = (suspended_at(lifetime, known, work, _BEGIN) for work in (_IDLE, _BUSY))
    if (
        at is None
        or decision_for(lifetime, replace(known, idle_since=_BEGIN), _IDLE, at).suspended_by
        != reason
    ):
        raise ValueError(
            f"{', '.join(keys)} suspend no berth as {reason!r}: docs/pictures/life.py is out of"
            " date"
        )
    wakes = (
        now
        for now in _hours(at)
        if decision_for(
            lifetime, BerthState(_BEGIN, suspended=True, suspended_by=reason), None, now
        ).suspend
        is False
    )
    night = at + _HOUR
    again = suspended_at(lifetime, BerthState(_BEGIN, woken=night), _IDLE, night)
    return Suspension(
        at, busy - at if busy else None, next(wakes, None), again - night if again else None
    )


def deletion() -> timedelta:
    """Return how long after its expiry a berth is due for deletion."""
    lifetime = lifetime_with("expires", "deleteAfter")
    due = (
        decision_for(
            lifetime, BerthState(_BEGIN, suspended=True, suspended_by=EXPIRED), None, now
        ).delete_due
        for now in _hours(_BEGIN)
    )
    moment = next(moment for moment in due if moment)
    return moment - suspension(EXPIRED, "expires").at


def _hours(begin: datetime) -> Iterator[datetime]:
    return (begin + number * _HOUR for number in range(24 * _DAYS))


def draw() -> Picture:
    """Return the picture."""
    picture = Picture(
        "Life of a berth",
        "A berth is added, waits for its nodes, is ready, and is suspended when it is idle, outside"
        " working hours, when it expires, or by a person. It wakes by a command, or when working"
        " hours begin. A person removes it.",
    )
    width = (WIDTH - 2 * _EDGE - 3 * 40) / 4
    places = [Area(_EDGE + number * (width + 40), 16, width, 104) for number in range(4)]
    states = (
        ("violet", "Added", "berth engineer add NAME", "or a stack of its own; then pulumi up"),
        ("amber", "Pending", "berth status", "says which node, image or quota it waits for"),
        ("green", "Ready", "ray job submit", "head and all workers are ready"),
        (
            "muted",
            "Idle",
            "berth/idle-since",
            "no job, session or actor runs; new work makes it ready",
        ),
    )
    for place, (tone, title, code, text) in zip(places, states, strict=True):
        _box(picture, place, tone, title, code, text)
    for left, right in ((0, 1), (1, 2), (2, 3)):
        start = places[left].x + width + 4
        end = places[right].x - 4
        picture.arrow([(start, 58), (end, 58)])
    picture.arrow([(places[3].x - 4, 82), (places[2].x + width + 4, 82)])
    top = 16 + 104 + 46
    bottom, expired = _suspended(picture, top)
    for number in (2, 3):
        middle = places[number].x + width / 2
        picture.arrow([(middle, 124), (middle, top - 4)])
    middle = places[1].x + width / 2
    picture.arrow([(middle, top - 4), (middle, 124)], "green")
    picture.text(middle + 10, 136, "wakes", Style(SMALL, "green"))
    picture.text(places[2].x + width / 2 + 10, 136, "for one of four reasons", Style(SMALL, "blue"))
    _end(picture, bottom + 34, expired)
    return picture


def _box(picture: Picture, area: Area, tone: str, title: str, code: str, text: str) -> None:
    picture.box(area, tone)
    room = area.width - 2 * _PAD
    y = picture.text(area.x + _PAD, area.y + 9, title, Style(LARGE, tone, bold=True), room=room) + 2
    y = picture.paragraph(area.x + _PAD, y, code, room, Style(SMALL, mono=True))
    picture.paragraph(area.x + _PAD, y, text, room, Style(SMALL))


def _suspended(picture: Picture, top: float) -> tuple[float, float]:
    """Draw the suspended state; return its lower edge, and the middle of `expired`."""
    below = picture.mark()
    x = _EDGE + _PAD
    picture.text(x, top + 10, "Suspended", Style(LARGE, "blue", bold=True))
    note = "no pods and no GPUs; settings, Service, token and address stay"
    picture.text(WIDTH - _EDGE - _PAD, top + 13, note, Style(SMALL), anchor="end")
    reasons = _reasons()
    width = (WIDTH - 2 * x - (len(reasons) - 1) * _GAP) / len(reasons)
    ends = []
    for number, (_, title, parts) in enumerate(reasons):
        left = x + number * (width + _GAP)
        y = picture.text(left + 10, top + 46, title, Style(tone="blue", bold=True), room=width - 20)
        for label, text in parts:
            y = picture.text(left + 10, y + 3, label, Style(SMALL, "muted"))
            y = picture.paragraph(left + 10, y, text, width - 20, Style(SMALL))
        ends.append(y)
    bottom = max(ends) + 6
    for number in range(len(reasons)):
        picture.box(
            Area(x + number * (width + _GAP), top + 38, width, bottom - top - 38),
            "page",
            radius=6,
            below=below,
        )
    bottom += _PAD
    picture.box(Area(_EDGE, top, WIDTH - 2 * _EDGE, bottom - top), "blue", below=below)
    expired = [reason for reason, _, _ in reasons].index(EXPIRED)
    return bottom, x + expired * (width + _GAP) + width / 2


def _reasons() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the reasons of a suspension: title, and what happens."""
    idle = suspension(UNUSED, "idle")
    hours = suspension(OUTSIDE_HOURS, "hours", "grace")
    expired = suspension(EXPIRED, "expires", "grace")
    return [
        (
            UNUSED,
            "idle",
            [
                ("cause", f"nothing has run for {_span(idle.at - _BEGIN)} (idle)"),
                ("running work", _delay(idle)),
                ("wakes", _wake(idle)),
            ],
        ),
        (
            OUTSIDE_HOURS,
            "hours",
            [
                ("cause", f"working hours end at {hours.at:%H:%M} (hours)"),
                ("running work", _delay(hours)),
                ("wakes", _wake(hours)),
            ],
        ),
        (
            EXPIRED,
            "expired",
            [
                (
                    "cause",
                    (
                        f"{_span(expired.at - _BEGIN)} after its creation, or after a last day"
                        " (expires)"
                    ),
                ),
                ("running work", _delay(expired)),
                ("wakes", _wake(expired)),
            ],
        ),
        (
            "",
            "person",
            [
                ("cause", "berth suspend NAME"),
                ("running work", "is lost, if the person agrees"),
                ("wakes", _wake(None)),
            ],
        ),
    ]


def _delay(found: Suspension) -> str:
    if found.delayed is None:
        return "keeps it awake"
    return f"delays it, at most {_span(found.delayed)} (grace)" if found.delayed else "ends"


def _wake(found: Suspension | None) -> str:
    """Return how a suspended berth wakes; without a suspension, one that a person suspended."""
    if found is None:
        everything = lifetime_with(*SAMPLE)
        if any(
            decision_for(everything, BerthState(_BEGIN, suspended=True), None, now).suspend is False
            for now in _hours(_BEGIN)
        ):
            raise ValueError(
                "the keeper wakes berths that people suspended: docs/pictures/life.py is out of"
                " date"
            )
        return "berth wake NAME; never automatically"
    if found.woken:
        return f"when they begin at {found.woken:%H:%M}, or berth wake NAME"
    day = f", for {_span(found.again)}" if found.again and found.again >= timedelta(days=1) else ""
    return f"berth wake NAME{day}"


def _end(picture: Picture, top: float, expired: float) -> None:
    """Draw the end of a berth."""
    picture.arrow([(expired, top - 30), (expired, top - 4)], "red")
    width = (WIDTH - 2 * _EDGE - 40) / 2
    due = Area(WIDTH - _EDGE - width, top, width, 90)
    removed = Area(_EDGE, top, width, 90)
    text = (
        f"{_span(deletion())} after its expiry (deleteAfter): berth status says so, and nothing is"
        " deleted"
    )
    _box(picture, due, "red", "Due for deletion", "berth/delete-due", text)
    text = "or pulumi destroy on the engineer's own stack; a person may do this in every state"
    _box(picture, removed, "muted", "Removed", "berth engineer remove NAME", text)
    picture.arrow([(due.x - 4, top + 45), (removed.x + width + 4, top + 45)])
    y = top + 90 + 12
    shown = "idle: 2h, hours: {from: 08:00, to: 20:00}, expires: 14d, grace: 4h, deleteAfter: 30d"
    picture.text(
        _EDGE, y, f"Drawn for lifecycle: {{{shown}}}", Style(SMALL, "muted"), room=WIDTH - 2 * _EDGE
    )


def _span(span: timedelta) -> str:
    hours = round(span / _HOUR)
    return f"{hours // 24}d" if hours % 24 == 0 else f"{hours}h"
