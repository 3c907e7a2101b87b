"""Rehearsal of plans: the smallest edit behind a wrong plan, and the figures."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from berth.cli.pulumi.update.score import Score, Wrong
from chaos.rehearsal import Edit, Rehearsal, Tried, Values, outcomes

EDITS = [
    Edit(path, 1, 2)
    for path in ("pools.cpu.nodes", "engineers.ann.workers", "engineers.ben.workers")
]


class Wrongly(Rehearsal):
    """Environment in which the plan of some edits together misses a loss of a RayCluster."""

    def __init__(self, wrong: Collection[str], name: str) -> None:
        self._wrong = set(wrong)
        self._name = name

    def apply(self, base: Values, edits: Sequence[Edit]) -> Tried:
        together = self._wrong <= {edit.path for edit in edits}
        return Tried(
            base, edits, Score(2, ["ben"], [Wrong(self._name, "lost")] if together else [], []), 1.0
        )


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (["engineers.ann.workers"], "ann"),
        (["pools.cpu.nodes"], "ann"),
        (["pools.cpu.nodes", "engineers.ann.workers"], "ann"),
        (["engineers.ben.workers"], "no RayCluster"),
        ([edit.path for edit in EDITS], ""),
    ],
)
def test_a_wrong_plan_shrinks_to_the_smallest_edits(wrong: list[str], name: str) -> None:
    rehearsal = Wrongly(wrong, name)
    whole: Any = rehearsal.apply({}, EDITS)
    (smallest,) = rehearsal.smallest(whole)
    assert [edit.path for edit in smallest.edits] == wrong
    edits, losses = outcomes(whole, [smallest])
    assert [outcome.problems for outcome in edits].count(["lost"]) == 1
    assert [outcome.problems for outcome in losses] == [[]], "ben lost pods as the plan says"


def test_a_loss_that_did_not_happen_counts() -> None:
    alarm = Tried({}, EDITS[:1], Score(1, [], [], [Wrong("ann", "keeps its pods")]), 1.0)
    edits, losses = outcomes(alarm, [alarm])
    assert [outcome.problems for outcome in [*edits, *losses]] == [[], ["keeps its pods"]]
