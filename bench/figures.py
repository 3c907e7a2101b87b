"""Figures of the benchmark, their goals, and the file that collects them from many runs."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

Results = dict[str, Any]
"""Parts by name; a part has runs by number of engineers, as text."""


@dataclass(frozen=True)
class Goal:
    """Figure with the largest value that is good.

    Attributes:
        what: what is measured.
        value: the figure.
        limit: the largest good value.
        unit: unit of both: `s`, `MB`, `kB`, `×` for a ratio.
    """

    what: str
    value: float
    limit: float
    unit: str

    @property
    def good(self) -> bool:
        return self.value <= self.limit


@dataclass
class Run:
    """One run of a part.

    Attributes:
        seconds: durations by what was done; `floor: …` and other peers beside berth's own.
        cpu: seconds of CPU of commands, by what was done; load of the machine changes it little.
        programs: seconds of CPU by what was done and by program, as sampled.
        memory: largest sums of resident memory in MB, by what was done and by program.
        facts: other figures by name, such as the size of the state in kB.
        profile: shares of the engine's time by what it did, from 0 to 1.
        goals: figures with goals.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    programs: dict[str, dict[str, float]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    profile: dict[str, float] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)

    def at_most(self, what: str, value: float, limit: float, unit: str) -> None:
        """Add a figure with its goal."""
        self.goals.append(Goal(what, round(value, 3), limit, unit))

    def ratio(self, what: str, one: str, other: str, limit: float) -> None:
        """Add the ratio of two durations, if both were measured."""
        if one in self.seconds and other in self.seconds:
            self.at_most(what, self.seconds[one] / self.seconds[other], limit, "×")

    def document(self, machine: dict[str, Any]) -> dict[str, Any]:
        goals = [asdict(goal) | {"good": goal.good} for goal in self.goals]
        return {
            "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
            "machine": machine,
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
            "cpu": {name: round(value, 2) for name, value in self.cpu.items()},
            "programs": self.programs,
            "memory": self.memory,
            "facts": {name: round(value, 2) for name, value in self.facts.items()},
            "profile": self.profile,
            "goals": goals,
        }


def machine() -> dict[str, Any]:
    """Return what a reader has to know about this machine, and the load before a run."""
    return {
        "cores": os.cpu_count() or 0,
        "memory": round(psutil.virtual_memory().total / 2**30),
        "load": round(os.getloadavg()[0], 1),
    }


def merge(path: Path, part: str, engineers: int, document: dict[str, Any]) -> None:
    """Write a run into a file, in place of an earlier one of the same part and size."""
    known: Results = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(path.read_text(encoding="utf-8"))
    runs = known.get(part, {}) | {str(engineers): document}
    known[part] = {size: runs[size] for size in sorted(runs, key=int)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def missed(documents: Iterable[dict[str, Any]]) -> list[str]:
    """Return the goals that were missed, as text."""
    return [
        f"{goal['what']}: {goal['value']:g} {goal['unit']} (goal: ≤ {goal['limit']:g})"
        for document in documents
        for goal in document["goals"]
        if not goal["good"]
    ]
