"""Decisions to suspend and wake a berth: tables of settings, facts and moments
(decision_cases.yaml).
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.components.programs.decision import (
    BerthState,
    Work,
    decision_for,
    next_begin,
    outside_since,
    state_of,
)
from berth.components.programs.lifetimes import Lifetime, lifetime_of, parse_days
from tests.unit.cases import table

CASES = table(__file__, "decision_cases.yaml")
NOTHING = Work()
JOB = Work(running=("job raysubmit_1 (running): python train.py",))
UNKNOWN = Work(unknown="http://10.0.0.1:8265 does not answer: timed out")
BERLIN = {"working-hours": "mon-fri 08:00-20:00", "zone": "Europe/Berlin"}
EXPIRING = {"expires": "2026-11-20"}
NIGHT = "2026-11-23 22:00"
DAY = "2026-11-24 10:00"


def at(text: str) -> datetime:
    """A moment in UTC: `2026-11-23 08:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def lifetime(annotations: dict[str, str]) -> Lifetime:
    return lifetime_of({f"berth/{name}": text for name, text in annotations.items()})


def known(created: str = "2026-11-02 09:00", **facts: Any) -> BerthState:
    for name in facts.keys() & {"woken", "idle_since", "begun", "asleep"}:
        facts[name] = at(facts[name])
    return BerthState(at(created), **facts)


CREATED = at("2026-11-02 09:00")
AWAKE = BerthState(CREATED)
WORK = {
    "nothing": NOTHING,
    "job": JOB,
    "unknown": UNKNOWN,
    "waiting": Work(waiting=True),
    "ended": Work(last=at("2026-11-24 09:00")),
    None: None,
}


@pytest.mark.parametrize(("hours", "now", "outside", "begins"), CASES["hours"])
def test_hours(hours: dict[str, str], now: str, outside: str | None, begins: str) -> None:
    assert outside_since(lifetime(hours), at(now)) == (at(outside) if outside else None)
    assert next_begin(lifetime(hours), at(now)) == at(begins)


@pytest.mark.parametrize(("annotations", "expires"), CASES["expiry"])
def test_expiry(annotations: dict[str, str], expires: str | None) -> None:
    assert lifetime(annotations).expires_at(CREATED) == (at(expires) if expires else None)


@pytest.mark.parametrize(
    ("settings", "facts", "work", "now", "suspend", "suspended_by"), CASES["decisions"]
)
def test_decisions(
    settings: dict[str, str],
    facts: dict[str, Any],
    work: str | None,
    now: str,
    suspend: object,
    suspended_by: str,
) -> None:
    decision = decision_for(lifetime(settings), known(**facts), WORK[work], at(now))
    assert (decision.suspend, decision.suspended_by) == (suspend, suspended_by)


@pytest.mark.parametrize(("annotations", "words"), CASES["unreadable"])
def test_an_annotation_that_can_not_be_read_is_named(
    annotations: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        lifetime(annotations)


def test_idle_time_counts_from_the_first_look_that_saw_nothing_and_anew_after_any_work() -> None:
    settings = lifetime({"idle": "10m"})
    seen_before = AWAKE
    now = at(DAY)
    seen: list[bool | None] = []
    for work in [NOTHING, NOTHING, JOB, NOTHING, NOTHING, UNKNOWN, NOTHING, NOTHING, NOTHING]:
        decision = decision_for(settings, seen_before, work, now)
        seen.append(decision.suspend)
        seen_before = BerthState(CREATED, idle_since=decision.idle_since)
        now = now + timedelta(minutes=5)
    assert seen == [None] * 8 + [True]


def test_what_is_due_and_held_up_is_said() -> None:
    decision = decision_for(lifetime(BERLIN), AWAKE, JOB, at(NIGHT))
    assert decision.held_up == (
        "it is outside of its working hours, but job raysubmit_1 (running): python train.py runs"
    )
    two = Work(running=("job a (running)", "job b (pending)"))
    assert (
        decision_for(lifetime(EXPIRING), AWAKE, two, at(DAY)).held_up
        == "it has expired, but job a (running) and 1 more run"
    )
    assert (
        "its work is unknown: http://10.0.0.1"
        in decision_for(lifetime(EXPIRING), AWAKE, UNKNOWN, at(DAY)).held_up
    )
    assert decision_for(lifetime(EXPIRING), AWAKE, NOTHING, at(DAY)).held_up == ""


def test_deletion_is_only_ever_noted() -> None:
    settings = lifetime(EXPIRING | {"delete-after": "30d"})
    suspended = BerthState(CREATED, suspended=True, suspended_by="expired")
    before, after = (
        decision_for(settings, suspended, None, at(f"2026-12-{day} 12:00")) for day in (20, 21)
    )
    assert (before.delete_due, after.delete_due) == (None, at("2026-12-21 00:00"))
    assert (after.suspend, after.notes()["berth/delete-due"]) == (None, "2026-12-21T00:00:00Z")


def cluster(manager: str, suspend: object, annotations: dict[str, str]) -> dict[str, Any]:
    owner = {
        "manager": manager,
        "time": "2026-11-23T21:00:00Z",
        "fieldsV1": {"f:spec": {"f:suspend": {}}},
    }
    stack = {
        "manager": "berth-lab",
        "time": "2026-11-24T10:00:00Z",
        "fieldsV1": {"f:spec": {"f:rayVersion": {}}},
    }
    return {
        "metadata": {
            "creationTimestamp": "2026-11-02T09:00:00Z",
            "annotations": {f"berth/{key}": text for key, text in annotations.items()},
            "managedFields": [stack, *([] if suspend is None else [owner])],
        },
        "spec": {} if suspend is None else {"suspend": suspend},
    }


@pytest.mark.parametrize(("manager", "suspend", "annotations", "facts"), CASES["owners"])
def test_who_suspended_or_woke_it_is_the_api_servers_to_say(
    manager: str, suspend: object, annotations: dict[str, str], facts: dict[str, Any]
) -> None:
    assert state_of(cluster(manager, suspend, annotations)) == known(**facts)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("mon-fri", {0, 1, 2, 3, 4}),
        ("Sun-Tue", {6, 0, 1}),
        ("mon,wed, fri", {0, 2, 4}),
        ("mon-sun", set(range(7))),
    ],
)
def test_days(text: str, days: set[int]) -> None:
    assert parse_days(text) == days
