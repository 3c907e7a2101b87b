"""Ratios of the last release, which the short benchmark in CI compares with its own.

`bench/released.json` has them; a release replaces them by those that the short benchmark prints.
Only CPU of commands in one run is compared: machines differ, and so does their load.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("released.json")

BASE = "empty program: no-op"
"""Figure that the others are divided by: the engine and Python themselves."""

STATE = "state kB a berth"

_TOLERATED = 1.3
"""Growth of a ratio of CPU that is noise on a busy machine of two cores."""
_TOLERATED_STATE = 1.1


def ratios(document: dict[str, Any]) -> dict[str, float]:
    """Return the CPU of commands by that of the empty program, and the state of a berth in kB."""
    cpu = document["cpu"]
    found = {what: round(seconds / cpu[BASE], 2) for what, seconds in cpu.items() if what != BASE}
    return found | {STATE: document["facts"][STATE]}


def slower(documents: Sequence[dict[str, Any]]) -> list[str]:
    """Return what takes more than in the last release."""
    before = json.loads(FILE.read_text(encoding="utf-8"))
    return [
        f"{what}{'' if what == STATE else ' / empty program'}: {now[what]:g}, {limit:g} in the last release"
        for document in documents
        for now in [ratios(document)]
        for what, limit in before.items()
        if now[what] > limit * (_TOLERATED_STATE if what == STATE else _TOLERATED)
    ]
