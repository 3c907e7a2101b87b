"""What a check found: one line each, and the command that mends what is missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["fine", "missing", "unchecked"]


@dataclass(frozen=True)
class Finding:
    """One line of what was looked at.

    Attributes:
        topic: what it belongs to, such as `quota`.
        state: `fine`; `missing`, which an update would fail for; `unchecked`, with the reason in
            `text`.
        text: what was found.
        mend: a command that can be pasted, or the change in the settings; "" where there is nothing
            to do.
    """

    topic: str
    state: State
    text: str
    mend: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


@dataclass(frozen=True)
class Topic:
    """Makes the findings of one topic."""

    name: str

    def fine(self, text: str) -> Finding:
        """It is as it has to be."""
        return Finding(self.name, "fine", text)

    def missing(self, text: str, mend: str = "") -> Finding:
        """An update would fail for it."""
        return Finding(self.name, "missing", text, mend)

    def unchecked(self, text: str, mend: str = "") -> Finding:
        """It could not be looked at, or is advice only."""
        return Finding(self.name, "unchecked", text, mend)
