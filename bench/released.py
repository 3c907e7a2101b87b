"""Ratios of the last release, which the short benchmark in CI compares with its own.

`bench/released.json` has them. A release writes it again: `make bench SHORT=1`, and the ratios that
it prints. Only ratios of one run are compared, because machines differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("released.json")

STATE = "state kB a berth"

_TOLERATED = 2.0
"""Growth of a ratio of durations that is noise on a busy machine of two cores."""
_TOLERATED_STATE = 1.1


def ratios(document: dict[str, Any]) -> dict[str, float]:
    """Return berth's durations by those of the floor, where both were measured."""
    seconds = document["seconds"]
    return {
        what: round(seconds[what] / seconds[f"floor: {what}"], 2) for what in seconds if f"floor: {what}" in seconds
    }


def slower(documents: Sequence[dict[str, Any]]) -> list[str]:
    """Return what takes longer than in the last release, and the size of state that has grown."""
    before = json.loads(FILE.read_text(encoding="utf-8"))
    problems = []
    for document in documents:
        now = ratios(document) | {STATE: document["facts"][STATE]}
        problems += [
            f"{what}{'' if what == STATE else ' / floor'}: {now[what]:g}, {limit:g} in the last release"
            for what, limit in before.items()
            if now[what] > limit * (_TOLERATED_STATE if what == STATE else _TOLERATED)
        ]
    return problems
