"""Checks of a proof: verdicts with their evidence. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "fail", "simulated", "skipped"]
"""Result of a check; `simulated` is a pass on a node that runs no containers."""

Judged = tuple[Verdict, str]
"""Verdict of a check, and its evidence in one line."""

RUN_LABEL = "berth/verify-run"
"""Label with the run's id, on all objects of a run."""

SIMULATED = "simulated: this node runs no containers (KWOK)"

# Number of names shown where hundreds of nodes or workers are wrong.
_NAMED = 4


@dataclass(frozen=True)
class Check:
    """Verdict on one subject, with the evidence in one line."""

    name: str
    verdict: Verdict
    evidence: str


def first_texts(texts: Sequence[str]) -> str:
    """Return some of the texts, and the number of the others."""
    more = len(texts) - _NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return "; ".join([*texts[:_NAMED], *rest])
