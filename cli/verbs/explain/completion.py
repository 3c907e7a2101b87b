"""Completion of paths of settings in a shell."""

import json
from pathlib import Path

from berth.cli.verbs.explain.settings import Setting, setting_at
from berth.components.core.errors import BadInputError

_SCHEMA = Path(__file__).parents[2] / "template/stacks/schema.json"


def completed_settings(incomplete: str) -> list[tuple[str, str]]:
    """Return paths of settings one level below what is typed, with their descriptions."""
    above, dot, _ = incomplete.rpartition(".")
    try:
        setting = setting_at(json.loads(_SCHEMA.read_text(encoding="utf-8")), above)
    except (BadInputError, OSError):
        return []
    settings: list[Setting] = []
    for child in setting.children():
        if child.has_chosen_key:
            settings += child.children()
        else:
            settings.append(child)
    completions = [(f"{above}{dot}{named.name}", named.description) for named in settings]
    if not above:
        completions.append(("environment", "Settings of an environment."))
        completions.append(("engineer", "Settings of an engineer's own stack."))
    return completions
