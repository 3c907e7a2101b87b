"""Phases of an update: which parts run without checkpoints, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from berth.cli.engine import Verb
from berth.cli.preview.asking import Answer
from berth.cli.update.phases import RESOURCE_BYTES, Phase, phases_of, seconds_of_checkpoints
from berth.components.cluster.owned import Owner, Owners
from berth.components.plan.effect import Level
from berth.components.plan.plan import Operation
from berth.stacks.preview.report import Change, Known, Part, Report

ALL, FAST = Phase(), Phase(checkpoints=False)
IN_A_BERTH = "berth:index:Berth$kubernetes:core/v1:Namespace"


def change(of_type: str, number: int = 0, operation: Operation = "create") -> Change:
    urn = f"urn:pulumi:env::berth::{of_type}::{number}"
    name = of_type.rsplit("$", 1)[-1]
    return Change("", name, str(number), "", urn, name, operation, Level.HARMLESS, (), ())


def report(*changes: Change, left_over: tuple[str, ...] = ()) -> Report:
    known = Known("env", "environment", unrecorded=bool(left_over), left_over=left_over)
    return Report(known, [Part("", changes)], (), {"create": len(changes), "same": 0}, (), None, ())


def berths(count: int, operation: Operation = "create") -> list[Change]:
    return [change(IN_A_BERTH, number, operation) for number in range(count)]


RELEASE, POOL = "kubernetes:helm.sh/v3:Release", "berth:gke:NodePool$gcp:container/nodePool:NodePool"


@pytest.mark.parametrize(
    ("changes", "verb", "phases"),
    [
        ([], "up", [ALL]),
        (berths(8), "up", [ALL]),
        (berths(8), "destroy", [ALL]),
        (berths(300), "up", [FAST]),
        (berths(300, "delete"), "destroy", [FAST]),
        ([*berths(10), change(RELEASE)], "up", [ALL]),
        ([*berths(300), change(RELEASE)], "up", [Phase("platform"), FAST]),
        ([*berths(300), change(POOL)], "up", [Phase("platform"), FAST]),
        ([*berths(300, "delete"), change(POOL, 0, "delete")], "up", [ALL]),
        ([*berths(300), change(POOL, 0, "replace")], "up", [ALL]),
        (
            [*berths(300, "delete"), change(POOL, 0, "delete")],
            "destroy",
            [Phase("berths", checkpoints=False), ALL],
        ),
        ([change(RELEASE, number) for number in range(300)], "up", [ALL]),
    ],
)
def test_only_many_changes_of_berths_run_without_checkpoints(
    changes: list[Change], verb: Verb, phases: list[Phase]
) -> None:
    assert phases_of(report(*changes), verb) == phases


@pytest.mark.parametrize(("others", "phases"), [(10, [ALL]), (300, [ALL]), (400, [FAST])])
def test_one_berth_more_in_a_large_environment_runs_without_checkpoints(others: int, phases: list[Phase]) -> None:
    one_more = replace(report(*berths(6)), counts={"create": 6, "same": others})
    assert phases_of(one_more, "up") == phases


@pytest.mark.parametrize(
    ("changes", "verb", "phases"),
    [
        ([], "up", [ALL]),
        (berths(6), "up", [FAST]),
        (berths(6, "delete"), "destroy", [FAST]),
        ([*berths(6), change(RELEASE)], "up", [ALL]),
        ([*berths(60), change(RELEASE)], "up", [Phase("platform"), FAST]),
    ],
)
def test_where_the_state_is_elsewhere_one_berth_is_worth_it(
    changes: list[Change], verb: Verb, phases: list[Phase]
) -> None:
    assert phases_of(report(*changes), verb, remote=True) == phases


@pytest.mark.parametrize("changes", [berths(6), berths(300)])
def test_an_own_stack_writes_its_state_at_every_step_since_no_plan_of_it_finds_a_killed_update(
    changes: list[Change],
) -> None:
    of_engineer = replace(report(*changes), known=Known("alice", "engineer"))
    assert phases_of(of_engineer, "up", remote=True) == [ALL]


@pytest.mark.parametrize(
    ("count", "verb", "phases"),
    [
        (0, "up", [Phase("platform"), ALL]),
        (300, "up", [Phase("platform"), FAST]),
        (3, "destroy", [Phase("berths"), ALL]),
    ],
)
def test_the_first_phase_leaves_room_for_the_removal_of_what_is_left_over(
    count: int, verb: Verb, phases: list[Phase]
) -> None:
    assert phases_of(report(*berths(count), left_over=("carol",)), verb) == phases


def test_the_time_of_checkpoints_grows_with_the_square() -> None:
    measured, bytes_then = 103, 5000
    assert seconds_of_checkpoints(820, 820) * bytes_then / RESOURCE_BYTES == pytest.approx(measured, rel=0.1)
    assert seconds_of_checkpoints(8200, 8200) == pytest.approx(100 * seconds_of_checkpoints(820, 820))


def owner(name: str, **more: Any) -> Owner:
    return replace(Owner("engineer", name, "env", "env"), **more)


def test_only_berths_of_the_same_stack_and_environment_are_left_over() -> None:
    owners = [owner("bob"), owner("carol"), owner("dana", stack="dana"), owner("eve", environment="other")]
    answer = Answer(owners=Owners({f"berth-{item.name}": item for item in owners}), unrecorded=True)
    assert answer.left_over("env", {"bob"}) == ["carol"]
    # A namespace that stays with the home of a removed berth is not one.
    home = Answer(owners=Owners({"berth-carol": owner("carol", keeps_home=True)}), unrecorded=True)
    assert home.left_over("env", {"bob"}) == []
    ray_cluster = {"metadata": {"namespace": "berth-carol"}}
    assert replace(home, live=[ray_cluster]).left_over("env", {"bob"}) == ["carol"]
    assert replace(answer, unrecorded=False).left_over("env", {"bob"}) == []
