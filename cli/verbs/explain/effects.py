"""Effects of edits of settings, from effects.json, which `make effects` writes."""

import json
from functools import cache
from pathlib import Path
from typing import TypedDict

EFFECTS = Path(__file__).with_name("effects.json")
"""Effect of an edit, by the setting's path: `make effects` writes it."""

SAME_AS_ENGINEERS = ("environment.defaults.", "environment.clusters.NAME.", "engineer.")
"""Paths whose settings have the same effect as those of an engineer on an environment."""
OF_GROUP = ".workerGroups.GROUP."
"""Part of paths whose settings have the same effect as `workers` and `worker`."""

_ENGINEER = "environment.engineers.ENGINEER."


class KnownEffects(TypedDict):
    """Content of effects.json."""

    effects: dict[str, str]
    """Meaning of each phrase."""
    settings: dict[str, str]
    """Phrase of each setting, by its path."""


@cache
def known_effects() -> KnownEffects:
    """Return the phrases with their meanings, and the phrase of each setting."""
    effects: KnownEffects = json.loads(EFFECTS.read_text(encoding="utf-8"))
    return effects


def effect_of(path: str) -> str:
    """Return the effect of an edit in a phrase; empty for a setting that only holds others."""
    phrases = known_effects()["settings"]
    of_engineer = path
    for prefix in SAME_AS_ENGINEERS:
        if path.startswith(prefix):
            of_engineer = f"{_ENGINEER}{path.removeprefix(prefix)}"
            break
    of_worker = of_engineer.replace(f"{OF_GROUP}workers", ".workers").replace(OF_GROUP, ".worker.")
    return phrases.get(path) or phrases.get(of_engineer) or phrases.get(of_worker) or ""


def meaning_of(effect: str) -> str:
    """Return the meaning of an effect's most severe phrase; empty for none."""
    return known_effects()["effects"].get(effect.rpartition(" or ")[2], "")
