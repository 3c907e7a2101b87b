"""Cases of the campaign: what one is, what came of it, and what all parts judge alike."""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.fleet import Ended, Fleet, left_behind

_CRASHES = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored|panic: |fatal error: |goroutine \d+"
)


@dataclass(frozen=True)
class Outcome:
    """Result of a case.

    Attributes:
        group: cases that the report counts together, such as a verb.
        what: the case in words, enough to understand a failure.
        problems: what was not as it should be; empty for a good case.
        facts: what was seen, such as the exit code.
    """

    group: str
    what: str
    problems: list[str]
    facts: dict[str, Any] = field(default_factory=dict)


class Goal:
    """Goal of a part of the campaign.

    Attributes:
        name: name on the command line.
        title: what is done to berth.
        good: what a good case is.
        bar: least share of good cases.
        cases: number of cases of a full campaign.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    good: ClassVar[str]
    bar: ClassVar[float] = 1.0
    cases: ClassVar[int]


class Part(Goal, ABC):
    """Part of the campaign."""

    @abstractmethod
    def prepare(self, fleet: Fleet) -> None:
        """Do what all cases need."""

    @abstractmethod
    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Run one case; the same number and chance give the same case."""


def chance_of(seed: int, part: str, number: int) -> random.Random:
    """Return the source of a case's random choices."""
    return random.Random(f"{seed}/{part}/{number}")  # noqa: S311 - choices that can be repeated


def crashes(ended: Ended) -> list[str]:
    """Return lines of stack traces and lost exceptions in a command's output."""
    return [
        f"crash: {ended.text[found.start() :][:1500]}" for found in _CRASHES.finditer(ended.text)
    ][:1]


def strays(mark: str, spared: Sequence[str] = (), lasting: Collection[int] = ()) -> list[str]:
    """Return processes of a case that are left, as problems, except spared programs and pids."""
    return [f"process left: {line}" for line in left_behind(mark, spared, lasting)]
