"""A small part of the campaign of faults (`make chaos`), with a fixed seed."""

from collections.abc import Iterator

import pytest

from chaos.answers import Answers
from chaos.case import Part
from chaos.fleet import Fleet, launched
from chaos.interrupts import Interrupts
from chaos.kills import Kills
from chaos.lanes import run_case
from chaos.releases import Releases
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

SEED = 20


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """An environment that is up, reached through the proxy."""
    with launched(tmp_path_factory.mktemp("chaos"), lab) as fleet:
        yield fleet


@pytest.mark.parametrize(
    ("part", "cases"),
    [
        (Interrupts(("verify gpu", "preview", "connect")), 3),
        (Kills(), 1),
        (Releases(), 2),
        (Answers(), 4),
    ],
    ids=lambda value: value.name if isinstance(value, Part) else None,
)
def test_a_bad_day(fleet: Fleet, part: Part, cases: int) -> None:
    part.prepare(fleet)
    outcomes = [run_case(fleet, part, SEED, number).outcome for number in range(cases)]
    assert {outcome.what: outcome.problems for outcome in outcomes if outcome.problems} == {}
    assert len(outcomes) == cases
