"""A small part of `make rehearse`, with a fixed seed: plans of random edits are right."""

from pathlib import Path

import pytest

from chaos.case import chance_of
from chaos.rehearsal import Rehearsal
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab]

SEED, UPDATES, ENGINEERS = 7, 2, 4


def test_plans_of_random_edits_are_right(lab: Lab, tmp_path: Path) -> None:
    rehearsal, chance = Rehearsal(tmp_path / "project", lab, ENGINEERS), chance_of(SEED, "rehearsal", 0)
    found = [tried for _ in range(UPDATES) for tried in rehearsal.update(rehearsal.chosen(chance))]
    assert not [wrong for tried in found for wrong in tried.wrong], "\n".join(map(str, found))
    assert sum(tried.score.right for tried in found if tried.score) > 0
