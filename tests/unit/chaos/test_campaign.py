"""Figures of the campaign, and the choices that a seed makes."""

import dataclasses
from argparse import Namespace
from pathlib import Path

import pytest

from berth.lab.home import CLONE
from chaos.__main__ import numbers_of
from chaos.case import Outcome, crashes
from chaos.fleet import Ended
from chaos.kills import Kills
from chaos.record import continued, figures_of, joined, summarize, write

GOOD = Outcome("up", "up: SIGINT", [], {"code": 130})
BAD = Outcome("up", "up: SIGTERM", ["locks left"], {"code": 1})


@pytest.mark.parametrize(("outcomes", "code"), [([GOOD, GOOD], 0), ([GOOD, BAD], 1)])
def test_a_missed_figure_is_an_exit_code(outcomes: list[Outcome], code: int) -> None:
    result = figures_of(
        Kills(), 1, [(number, outcome, 1.0) for number, outcome in enumerate(outcomes)]
    )
    assert summarize({"kills": result}) == code
    assert [case["what"] for case in result["failed"]] == [
        outcome.what for outcome in outcomes if outcome.problems
    ]


def test_figures_name_no_folder_of_the_machine() -> None:
    trace = f'crash: File "{CLONE}/cli/main.py"; File "{dataclasses.__file__}"'
    (failed,) = figures_of(Kills(), 1, [(0, Outcome("up", "up: SIGTERM", [trace]), 1.0)])["failed"]
    assert failed["problems"] == ['crash: File "cli/main.py"; File "dataclasses.py"']


def test_a_campaign_goes_on_after_the_recorded_cases(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    first = figures_of(Kills(), 7, [(0, GOOD, 1.0), (1, BAD, 4.0)])
    write(path, {"kills": first})
    options = Namespace(resume=True, record=path, case=None, cases=3, seed=7)
    assert continued(["kills"], options) == {"kills": first}
    assert numbers_of(Kills, options, first) == [2]
    whole = joined(first, figures_of(Kills(), 7, [(2, GOOD, 2.0)]))
    one_run = figures_of(Kills(), 7, [(0, GOOD, 1.0), (1, BAD, 4.0), (2, GOOD, 2.0)])
    assert whole == one_run
    nothing = figures_of(Kills(), 7, [])
    assert joined(nothing, nothing)["share"] == 1.0


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
