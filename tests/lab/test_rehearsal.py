"""A small part of `make rehearse`, with a fixed seed: no plan misses a loss of pods."""

from pathlib import Path

import pytest

from chaos.case import chance_of
from chaos.rehearsal import Rehearsal, figures
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

SEED, CASES = 7, 3


def test_plans_of_random_edits_are_right(lab: Lab, tmp_path: Path) -> None:
    rehearsal = Rehearsal(tmp_path / "project", lab)
    found = [one for number in range(CASES) for one in rehearsal.case(chance_of(SEED, "rehearsal", number))]
    assert figures(found)[1], "\n".join(map(str, found))
    assert sum(one.right for one in found) > 0
