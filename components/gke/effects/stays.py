"""Values of Google's resources that stay, though the settings no longer ask for them.

The provider takes a field that is left out for one whose value may stay
(components/gke/provider_fields). The engine then shows no change at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.gke.effects import WORDS_OF_FIELDS
from berth.components.gke.provider_fields import left_out, resources
from berth.components.plan.plan import Step


def _texts(key: str) -> dict[tuple[str, str], str]:
    return {
        (token, path): text
        for token, found in WORDS_OF_FIELDS.items()
        for path, text in found.get(key, {}).items()
    }


WAYS: Mapping[tuple[str, str], str] = _texts("stays")
"""Advice about a value that stays, by type and path, for each field that berth does not always
send."""

QUIET: Mapping[tuple[str, str], str] = _texts("stays_quietly")
"""Why nothing is said of a value that stays."""


@dataclass(frozen=True)
class Stay:
    """A value that stays."""

    type: str
    name: str
    path: str
    value: Any
    way: str


def stays_of(steps: Sequence[Step]) -> list[Stay]:
    """The values that stay, of resources that are not replaced."""
    found = []
    for step in steps:
        facts = resources().get(step.type)
        if facts is None or step.operation not in ("same", "update"):
            continue
        for path, value in left_out(step.before, step.after, facts):
            if (step.type, path) not in QUIET:
                way = WAYS.get((step.type, path), "to change it, write another value")
                found.append(Stay(step.type, step.name, path, value, way))
    return found
