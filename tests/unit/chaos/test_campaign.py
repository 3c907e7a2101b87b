"""Figures of the campaign, and the choices that a seed makes."""

import contextlib
import dataclasses
import json
from argparse import Namespace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from berth.components.core.errors import BerthError
from berth.lab.home import CLONE
from chaos.__main__ import PARTS, numbers_of, without_gaps
from chaos.case import Outcome, chance_of, crashes
from chaos.fleet import Ended
from chaos.kills import Kills, boundaries
from chaos.lanes import Lanes, Result
from chaos.races import Races
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


def test_nothing_that_ran_is_no_success() -> None:
    assert summarize({}) == 1


def test_a_seed_chooses_the_same_case_again() -> None:
    chosen = [chance_of(7, "kills", number).random() for number in range(20)]
    assert chosen == [chance_of(7, "kills", number).random() for number in range(20)]
    others = [chance_of(7, "races", 0).random(), chance_of(8, "kills", 0).random()]
    assert len({*chosen, *others}) == 22


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


def test_a_part_that_runs_again_replaces_its_own_figures_alone(tmp_path: Path) -> None:
    path = tmp_path / "figures" / "chaos.json"
    write(path, {"kills": {"cases": 1}, "races": {"cases": 2}})
    write(path, {"kills": {"cases": 3}})
    assert json.loads(path.read_text()) == {"kills": {"cases": 3}, "races": {"cases": 2}}


@pytest.mark.parametrize(("seed", "recorded"), [(8, True), (7, False)])
def test_a_campaign_goes_on_with_recorded_cases_of_its_seed_only(
    tmp_path: Path, seed: int, *, recorded: bool
) -> None:
    path = tmp_path / "chaos.json"
    write(path, {"kills": figures_of(Kills(), 7, [(0, GOOD, 1.0)])})
    options = Namespace(resume=True, record=path if recorded else None, seed=seed)
    with pytest.raises(SystemExit) as ended:
        continued(["kills"], options)
    assert ended.value.code == 2
    assert continued(["races"], Namespace(resume=True, record=path, seed=seed)) == {}


def test_a_later_run_begins_at_the_first_case_that_an_interrupted_one_lacks() -> None:
    results = [Result(number, GOOD, 1.0) for number in (4, 2, 5, 3, 7)]
    assert [result.number for result in without_gaps(results, range(2, 9))] == [2, 3, 4, 5]


def quick_lane(connection: Connection, _lab: Path | None) -> None:
    """Lane whose cases take no time, and that ends at a number below 0."""
    with contextlib.suppress(KeyboardInterrupt):
        connection.send(None)
        while True:
            part, _, number = connection.recv()
            if number < 0:
                return
            connection.send(Result(number, Outcome(part.name, "", []), 0.0))


def test_lanes_share_the_cases_of_a_part_and_one_that_ends_by_itself_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chaos.lanes._lane", quick_lane)
    with Lanes(2) as lanes:
        results = list(lanes.run(Kills(), 1, range(5)))
        assert sorted(result.number for result in results) == [0, 1, 2, 3, 4]
        assert {result.outcome.group for result in results} == {"kills"}
        (again,) = lanes.run(Races(), 1, [7])
        assert (again.number, again.outcome.group) == (7, "races")
        with pytest.raises(BerthError, match="a lane of the campaign has ended"):
            list(lanes.run(Kills(), 1, [-1]))


def test_a_full_campaign_kills_at_each_boundary_at_least_25_times() -> None:
    assert len(set(boundaries(7))) == 42
    assert Kills.cases >= 25 * 42


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
