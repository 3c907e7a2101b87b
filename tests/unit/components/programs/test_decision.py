"""Decisions to suspend and wake a berth: tables of settings, of facts and of moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.components.programs.decision import Decision, Known, Work, decide, known_of, next_begin, outside_since
from berth.components.programs.lifetimes import Lifetime, lifetime_of, parse_days, parse_expiry

BERLIN = {"berth/working-hours": "mon-fri 08:00-20:00", "berth/zone": "Europe/Berlin"}
NOTHING = Work()
JOB = Work(running=("job raysubmit_1 (running): python train.py",))
UNKNOWN = Work(unknown="http://10.0.0.1:8265 does not answer: timed out")


def at(text: str) -> datetime:
    """A moment in UTC: `2026-11-23 08:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def lifetime(annotations: dict[str, str]) -> Lifetime:
    return lifetime_of(annotations)


def outcome(decision: Decision) -> tuple[bool | None, str]:
    return decision.suspend, decision.suspended_by


CREATED = at("2026-11-02 09:00")
AWAKE = Known(CREATED)


@pytest.mark.parametrize(
    ("hours", "now", "outside", "begins"),
    [
        # Monday to Friday in Berlin, an hour ahead of UTC in winter.
        (BERLIN, "2026-11-23 06:59", "2026-11-20 19:00", "2026-11-23 07:00"),
        (BERLIN, "2026-11-23 07:00", None, "2026-11-24 07:00"),
        (BERLIN, "2026-11-23 18:59", None, "2026-11-24 07:00"),
        (BERLIN, "2026-11-23 19:00", "2026-11-23 19:00", "2026-11-24 07:00"),
        (BERLIN, "2026-11-21 12:00", "2026-11-20 19:00", "2026-11-23 07:00"),
        # Two hours ahead in summer: clocks went forward on 2026-03-29, and go back on 2026-10-25.
        (BERLIN, "2026-03-27 19:30", "2026-03-27 19:00", "2026-03-30 06:00"),
        (BERLIN, "2026-03-30 06:00", None, "2026-03-31 06:00"),
        (BERLIN, "2026-10-23 18:30", "2026-10-23 18:00", "2026-10-26 07:00"),
        # Across midnight: Friday's end on Saturday, and Sunday has none.
        ({"berth/working-hours": "mon-fri 22:00-06:00"}, "2026-11-21 05:59", None, "2026-11-23 22:00"),
        ({"berth/working-hours": "mon-fri 22:00-06:00"}, "2026-11-21 06:00", "2026-11-21 06:00", "2026-11-23 22:00"),
        ({"berth/working-hours": "mon-fri 22:00-06:00"}, "2026-11-23 05:00", "2026-11-21 06:00", "2026-11-23 22:00"),
        # Through the night in which clocks go forward: from 22:00 CET to 06:00 CEST are seven
        # hours.
        (
            {"berth/working-hours": "sat 22:00-06:00", "berth/zone": "Europe/Berlin"},
            "2026-03-29 03:59",
            None,
            "2026-04-04 20:00",
        ),
        (
            {"berth/working-hours": "sat 22:00-06:00", "berth/zone": "Europe/Berlin"},
            "2026-03-29 04:00",
            "2026-03-29 04:00",
            "2026-04-04 20:00",
        ),
        # A time that the clocks leave out (02:30 on 2026-03-29 in Berlin) is as long after midnight
        # as it would be.
        (
            {"berth/working-hours": "sun 02:30-12:00", "berth/zone": "Europe/Berlin"},
            "2026-03-29 01:30",
            None,
            "2026-04-05 00:30",
        ),
        # One that they have twice (02:30 on 2026-10-25) is the first of the two.
        (
            {"berth/working-hours": "sat 20:00-02:30", "berth/zone": "Europe/Berlin"},
            "2026-10-25 00:30",
            "2026-10-25 00:30",
            "2026-10-31 19:00",
        ),
        # One day a week, and the end of the day.
        ({"berth/working-hours": "wed 00:00-24:00"}, "2026-11-25 23:59", None, "2026-12-02 00:00"),
        ({"berth/working-hours": "wed 00:00-24:00"}, "2026-11-25 00:00", None, "2026-12-02 00:00"),
        ({"berth/working-hours": "wed 00:00-24:00"}, "2026-11-24 23:59", "2026-11-19 00:00", "2026-11-25 00:00"),
        # Days without a night between them.
        ({"berth/working-hours": "mon-tue 00:00-24:00"}, "2026-11-24 00:00", None, "2026-11-30 00:00"),
        # West of UTC the day is another.
        (
            {"berth/working-hours": "fri 18:00-23:00", "berth/zone": "America/Los_Angeles"},
            "2026-11-21 03:00",
            None,
            "2026-11-28 02:00",
        ),
    ],
)
def test_hours(hours: dict[str, str], now: str, outside: str | None, begins: str) -> None:
    moment = at(now)
    assert outside_since(lifetime(hours), moment) == (at(outside) if outside else None)
    assert next_begin(lifetime(hours), moment) == at(begins)


@pytest.mark.parametrize(
    ("annotations", "expires"),
    [
        ({"berth/expires": "14d"}, "2026-11-16 09:00"),
        ({"berth/expires": "90s"}, "2026-11-02 09:01:30"),
        ({"berth/expires": "2026-12-31"}, "2027-01-01 00:00"),
        ({"berth/expires": "2026-12-31", "berth/zone": "Europe/Berlin"}, "2026-12-31 23:00"),
        ({"berth/expires": "2026-06-30", "berth/zone": "America/New_York"}, "2026-07-01 04:00"),
        # A day on which the clocks go back has 25 hours.
        ({"berth/expires": "2026-10-25", "berth/zone": "Europe/Berlin"}, "2026-10-25 23:00"),
        ({}, None),
    ],
)
def test_expiry(annotations: dict[str, str], expires: str | None) -> None:
    assert lifetime(annotations).expires_at(CREATED) == (at(expires) if expires else None)


NIGHT, DAY, WEEKEND = "2026-11-23 22:00", "2026-11-24 10:00", "2026-11-21 12:00"
BY_HOURS = Known(CREATED, suspended=True, suspended_by="hours")
EXPIRING = {"berth/expires": "2026-11-20"}
TILL_MONDAY = at("2026-11-21 00:00")


@pytest.mark.parametrize(
    ("settings", "known", "work", "now", "expected"),
    [
        # Nothing said, nothing done, whatever was.
        ({}, AWAKE, NOTHING, NIGHT, (None, "")),
        ({}, Known(CREATED, suspended=True), None, NIGHT, (None, "")),
        # Working hours.
        (BERLIN, AWAKE, NOTHING, DAY, (None, "")),
        (BERLIN, AWAKE, NOTHING, NIGHT, (True, "hours")),
        (BERLIN, AWAKE, NOTHING, WEEKEND, (True, "hours")),
        (BERLIN, AWAKE, JOB, NIGHT, (None, "")),
        (BERLIN, AWAKE, UNKNOWN, NIGHT, (None, "")),
        (BERLIN, AWAKE, Work(waiting=True), NIGHT, (True, "hours")),
        (BERLIN, BY_HOURS, None, NIGHT, (None, "hours")),
        (BERLIN, BY_HOURS, None, DAY, (False, "")),
        # A person's suspension is a person's to end; so is one for want of work.
        (BERLIN, Known(CREATED, suspended=True), None, DAY, (None, "")),
        (BERLIN, Known(CREATED, suspended=True, suspended_by="idle"), None, DAY, (None, "idle")),
        # Without hours there is no night any more.
        ({"berth/idle": "2h"}, BY_HOURS, None, NIGHT, (False, "")),
        # Woken, or made, at night: it stays until the next evening.
        (BERLIN, Known(CREATED, woken=at("2026-11-23 21:00")), NOTHING, NIGHT, (None, "")),
        (BERLIN, Known(at("2026-11-23 21:00")), NOTHING, NIGHT, (None, "")),
        (BERLIN, Known(CREATED, woken=at("2026-11-23 21:00")), NOTHING, "2026-11-24 19:00", (True, "hours")),
        (BERLIN, Known(CREATED, woken=at("2026-11-23 18:00")), NOTHING, NIGHT, (True, "hours")),
        # Grace.
        (BERLIN | {"berth/grace": "4h"}, AWAKE, JOB, NIGHT, (None, "")),
        (BERLIN | {"berth/grace": "3h"}, AWAKE, JOB, NIGHT, (True, "hours")),
        (BERLIN | {"berth/grace": "3h"}, AWAKE, UNKNOWN, NIGHT, (True, "hours")),
        # Expiry.
        (EXPIRING, AWAKE, NOTHING, "2026-11-20 23:59", (None, "")),
        (EXPIRING, AWAKE, NOTHING, "2026-11-21 00:00", (True, "expired")),
        (EXPIRING, AWAKE, JOB, "2026-12-24 00:00", (None, "")),
        (EXPIRING | {"berth/grace": "1d"}, AWAKE, JOB, "2026-11-21 23:59", (None, "")),
        (EXPIRING | {"berth/grace": "1d"}, AWAKE, JOB, "2026-11-22 00:00", (True, "expired")),
        # Who wakes an expired berth, or makes it with a date that is past, has it for a day; then
        # work is waited for again.
        (EXPIRING, Known(CREATED, woken=at("2026-11-25 10:00")), NOTHING, "2026-11-26 09:59", (None, "")),
        (EXPIRING, Known(CREATED, woken=at("2026-11-25 10:00")), NOTHING, "2026-11-26 10:00", (True, "expired")),
        (EXPIRING, Known(at("2026-11-25 10:00")), NOTHING, "2026-11-26 09:59", (None, "")),
        (
            EXPIRING | {"berth/grace": "2h"},
            Known(CREATED, woken=at("2026-11-25 10:00")),
            JOB,
            "2026-11-26 11:59",
            (None, ""),
        ),
        # It stays suspended when it is given more time, and in the morning after the night in which
        # it expired.
        (
            {"berth/expires": "2027-11-20"},
            Known(CREATED, suspended=True, suspended_by="expired"),
            None,
            DAY,
            (None, "expired"),
        ),
        (BERLIN | EXPIRING, BY_HOURS, None, DAY, (None, "expired")),
        # Idleness.
        ({"berth/idle": "2h"}, AWAKE, NOTHING, DAY, (None, "")),
        ({"berth/idle": "2h"}, Known(CREATED, idle_since=at("2026-11-24 08:01")), NOTHING, DAY, (None, "")),
        ({"berth/idle": "2h"}, Known(CREATED, idle_since=at("2026-11-24 08:00")), NOTHING, DAY, (True, "idle")),
        ({"berth/idle": "2h"}, Known(CREATED, idle_since=at("2026-11-20 08:00")), JOB, DAY, (None, "")),
        ({"berth/idle": "2h"}, Known(CREATED, idle_since=at("2026-11-20 08:00")), UNKNOWN, DAY, (None, "")),
        ({"berth/idle": "2h"}, Known(CREATED, idle_since=at("2026-11-20 08:00")), Work(waiting=True), DAY, (None, "")),
        # What ended between two looks, a new head, and a wake are activity too.
        (
            {"berth/idle": "2h"},
            Known(CREATED, idle_since=at("2026-11-20 08:00")),
            Work(last=at("2026-11-24 09:00")),
            DAY,
            (None, ""),
        ),
        (
            {"berth/idle": "2h"},
            Known(CREATED, idle_since=at("2026-11-20 08:00"), woken=at("2026-11-24 09:00")),
            NOTHING,
            DAY,
            (None, ""),
        ),
        # A grace is not for it: it never takes work.
        ({"berth/idle": "2h", "berth/grace": "1h"}, Known(CREATED, idle_since=CREATED), JOB, DAY, (None, "")),
    ],
)
def test_decisions(
    settings: dict[str, str], known: Known, work: Work | None, now: str, expected: tuple[bool | None, str]
) -> None:
    assert outcome(decide(lifetime(settings), known, work, at(now))) == expected


def test_idle_time_counts_from_the_first_look_that_saw_nothing_and_anew_after_any_work() -> None:
    settings, known, now = lifetime({"berth/idle": "10m"}), AWAKE, at(DAY)
    seen: list[bool | None] = []
    for work in [NOTHING, NOTHING, JOB, NOTHING, NOTHING, UNKNOWN, NOTHING, NOTHING, NOTHING]:
        decision = decide(settings, known, work, now)
        seen.append(decision.suspend)
        known, now = Known(CREATED, idle_since=decision.idle_since), now + timedelta(minutes=5)
    assert seen == [None] * 8 + [True]


def test_what_is_due_and_held_up_is_said() -> None:
    decision = decide(lifetime(BERLIN), AWAKE, JOB, at(NIGHT))
    assert decision.held_up == (
        "it is outside of its working hours, but job raysubmit_1 (running): python train.py runs"
    )
    two = Work(running=("job a (running)", "job b (pending)"))
    assert (
        decide(lifetime(EXPIRING), AWAKE, two, at(DAY)).held_up == "it has expired, but job a (running) and 1 more run"
    )
    assert "its work is unknown: http://10.0.0.1" in decide(lifetime(EXPIRING), AWAKE, UNKNOWN, at(DAY)).held_up
    assert decide(lifetime(EXPIRING), AWAKE, NOTHING, at(DAY)).held_up == ""


def test_deletion_is_only_ever_noted() -> None:
    settings = lifetime(EXPIRING | {"berth/delete-after": "30d"})
    suspended = Known(CREATED, suspended=True, suspended_by="expired")
    before, after = (decide(settings, suspended, None, at(f"2026-12-{day} 12:00")) for day in (20, 21))
    assert (before.delete_due, after.delete_due) == (None, at("2026-12-21 00:00"))
    assert (after.suspend, after.notes()["berth/delete-due"]) == (None, "2026-12-21T00:00:00Z")


def cluster(manager: str, *, suspend: bool | None, **annotations: str) -> dict[str, Any]:
    owner = {"manager": manager, "time": "2026-11-23T21:00:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}}
    stack = {"manager": "berth-lab", "time": "2026-11-24T10:00:00Z", "fieldsV1": {"f:spec": {"f:rayVersion": {}}}}
    return {
        "metadata": {
            "creationTimestamp": "2026-11-02T09:00:00Z",
            "annotations": {f"berth/{key.replace('_', '-')}": text for key, text in annotations.items()},
            "managedFields": [stack, *([] if suspend is None else [owner])],
        },
        "spec": {} if suspend is None else {"suspend": suspend},
    }


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (cluster("", suspend=None), AWAKE),
        (
            cluster("berth-keeper", suspend=True, suspended_by="hours"),
            Known(CREATED, suspended=True, suspended_by="hours"),
        ),
        # Somebody woke it and suspended it again before the keeper looked: its own note is of the
        # time before.
        (cluster("berth-suspension", suspend=True, suspended_by="hours"), Known(CREATED, suspended=True)),
        (
            cluster("berth-suspension", suspend=False, suspended_by="hours"),
            Known(CREATED, woken=at("2026-11-23 21:00")),
        ),
        (cluster("berth-keeper", suspend=False), AWAKE),
        (
            cluster("berth-keeper", suspend=False, idle_since="2026-11-24T08:00:00Z"),
            Known(CREATED, idle_since=at("2026-11-24 08:00")),
        ),
    ],
)
def test_who_suspended_or_woke_it_is_the_api_servers_to_say(given: dict[str, Any], known: Known) -> None:
    assert known_of(given) == known


@pytest.mark.parametrize(
    ("text", "days"),
    [("mon-fri", {0, 1, 2, 3, 4}), ("Sun-Tue", {6, 0, 1}), ("mon,wed, fri", {0, 2, 4}), ("mon-sun", set(range(7)))],
)
def test_days(text: str, days: set[int]) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"berth/expires": "soon"}, "neither a day nor a duration"),
        ({"berth/working-hours": "mon-fri"}, "not a time of day"),
        ({"berth/working-hours": "weekdays 08:00-20:00"}, "not a list of days of the week"),
        ({"berth/idle": "0s"}, "not a duration"),
        ({"berth/zone": "Mars/Olympus"}, "no time zone 'Mars/Olympus'"),
        ({"berth/zone": "../etc/passwd"}, "no time zone"),
    ],
)
def test_an_annotation_that_can_not_be_read_is_named(annotations: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        lifetime_of(annotations)


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a day nor a duration"):
        parse_expiry("2026-02-30")
