"""Figures of the campaign, and the choices that a seed makes."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from chaos.__main__ import PARTS, continued, numbers_of, summarize
from chaos.case import Outcome, chance_of, crashes
from chaos.fleet import Ended
from chaos.kills import Kills, boundaries
from chaos.record import joined, results_of, write

GOOD = Outcome("up", "up: SIGINT", [], {"code": 130})
BAD = Outcome("up", "up: SIGTERM", ["locks left"], {"code": 1})


def test_a_seed_chooses_the_same_case_again() -> None:
    assert chance_of(7, "kills", 3).random() == chance_of(7, "kills", 3).random()
    assert len({chance_of(7, "kills", number).random() for number in range(20)}) == 20


@pytest.mark.parametrize(("outcomes", "code"), [([GOOD, GOOD], 0), ([GOOD, BAD], 1)])
def test_a_missed_figure_is_an_exit_code(outcomes: list[Outcome], code: int) -> None:
    result = results_of(Kills(), 1, [(number, outcome, 1.0) for number, outcome in enumerate(outcomes)])
    assert summarize({"kills": result}) == code
    assert [case["what"] for case in result["failed"]] == [outcome.what for outcome in outcomes if outcome.problems]


def test_nothing_that_ran_is_no_success() -> None:
    assert summarize({}) == 1


def test_a_part_that_runs_again_replaces_its_own_figures_alone(tmp_path: Path) -> None:
    path = tmp_path / "figures" / "chaos.json"
    write(path, {"kills": {"cases": 1}, "races": {"cases": 2}})
    write(path, {"kills": {"cases": 3}})
    assert json.loads(path.read_text()) == {"kills": {"cases": 3}, "races": {"cases": 2}}


def test_a_campaign_goes_on_after_the_recorded_cases(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    first = results_of(Kills(), 7, [(0, GOOD, 1.0), (1, BAD, 4.0)])
    write(path, {"kills": first})
    options = Namespace(resume=True, record=path, case=None, cases=3, seed=7, part=["kills"])
    assert continued(options) == {"kills": first}
    assert numbers_of(Kills, options, first) == [2]
    whole = joined(first, results_of(Kills(), 7, [(2, GOOD, 2.0)]))
    one_run = results_of(Kills(), 7, [(0, GOOD, 1.0), (1, BAD, 4.0), (2, GOOD, 2.0)])
    assert whole == one_run


def test_cases_of_another_seed_are_not_joined(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    write(path, {"kills": results_of(Kills(), 7, [(0, GOOD, 1.0)])})
    with pytest.raises(SystemExit) as ended:
        continued(Namespace(resume=True, record=path, case=None, cases=3, seed=8, part=["kills"]))
    assert ended.value.code == 2


def test_a_full_campaign_kills_at_more_than_twenty_boundaries_fifty_times_at_least() -> None:
    assert len(set(boundaries(7))) == 42
    assert Kills.cases >= 20 * 50


def test_parts_have_names_of_their_own() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)


@pytest.mark.parametrize(
    ("stderr", "found"),
    [
        ("error: the API server does not answer", 0),
        ("Traceback (most recent call last):\n  File ...", 1),
        ("Exception ignored in: <function x>", 1),
        ("panic: runtime error", 1),
    ],
)
def test_a_stack_trace_is_a_problem(stderr: str, found: int) -> None:
    assert len(crashes(Ended(1, "", stderr, 1.0))) == found
