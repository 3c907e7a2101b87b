"""Findings of checks: a line, and the command that fixes what is missing."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from berth.components.core import fast_yaml

State = Literal["fine", "warning", "missing", "unchecked"]
_STATES: tuple[State, ...] = get_args(State)

TEXTS: dict[str, dict[str, dict[str, str]]] = fast_yaml.load_beside(__file__)
"""Texts and remedies of findings, by topic and key."""


@dataclass(frozen=True)
class Finding:
    """Finding of a check."""

    topic: str
    state: State
    """`fine`; `warning`, which stops no update; `missing`, for which an update would fail;
    `unchecked`, with the reason."""
    text: str
    remedy: str = ""
    """A command to paste, or the change in the settings; "" if there is nothing to do."""


@dataclass(frozen=True)
class Topic:
    """Topic of findings, of which findings.yaml has the texts."""

    name: str

    def found(self, key: str, /, **facts: Any) -> Finding:
        """Return a finding of the topic with its facts filled in."""
        texts = TEXTS[self.name][key]
        state = next(state for state in _STATES if state in texts)
        return Finding(
            self.name, state, texts[state].format(**facts), texts.get("remedy", "").format(**facts)
        )

    def missing(self, text: str, remedy: str = "") -> Finding:
        """Return a finding in the words of an error for which an update would fail."""
        return Finding(self.name, "missing", text, remedy)

    def unchecked(self, text: str, remedy: str = "") -> Finding:
        """Return a finding in the words of an error that left something unchecked, or advice."""
        return Finding(self.name, "unchecked", text, remedy)
