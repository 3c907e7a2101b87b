"""A small part of `make rehearse`, with a fixed seed, and edits that once failed together.

Long: the tests of plans judge one edit at a time.
"""

from pathlib import Path

import pytest

from chaos.case import chance_of
from chaos.rehearsal import Edit, Rehearsal
from tests.lab.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

SEED = 9
ENGINEERS = 4

TOGETHER = [
    Edit("isolation.quotas", before=None, after=False),
    Edit("engineers.eng-00.dashboard", None, "internal"),
    Edit("engineers.eng-01.head.cpu", 1, 8),
]
"""A load balancer and a head that the quota before does not allow, and no quota."""


def test_a_plan_of_random_edits_is_right(lab: Lab, tmp_path: Path) -> None:
    rehearsal = Rehearsal(tmp_path / "project", lab, ENGINEERS)
    chosen = rehearsal.chosen(chance_of(SEED, "rehearsal", 0))
    (tried,) = rehearsal.update([*TOGETHER, *chosen])
    assert not tried.wrong, str(tried)
    assert tried.score
    assert tried.score.right > ENGINEERS, (
        "named clusters and the RayCluster that no stack has are judged too"
    )
