"""Figures of the benchmark, and the file that collects them from many runs."""

import contextlib
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

Results = dict[str, Any]
"""Parts by name; a part has runs by number of engineers, as text."""


@dataclass
class Run:
    """One run of a part.

    Attributes:
        seconds: durations by what was done; `floor: …` and other peers beside berth's own.
        cpu: seconds of CPU of commands, by what was done; load of the machine changes it little.
        programs: seconds of CPU by what was done and by program, as sampled.
        memory: largest sums of resident memory in MB, by what was done and by program.
        facts: other figures by name, such as the size of the state in kB.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    programs: dict[str, dict[str, float]] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)

    def document(self, machine: dict[str, Any]) -> dict[str, Any]:
        return {
            "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
            "machine": machine,
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
            "cpu": {name: round(value, 2) for name, value in self.cpu.items()},
            "programs": self.programs,
            "memory": self.memory,
            "facts": {name: round(value, 2) for name, value in self.facts.items()},
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
