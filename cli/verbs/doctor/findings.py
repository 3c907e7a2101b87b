"""Findings of checks: a line, and the command that fixes what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["fine", "missing", "unchecked"]


@dataclass(frozen=True)
class Finding:
    """Finding of a check.

    Attributes:
        topic: its topic, such as `quota`.
        state: `fine`; `missing`, for which an update would fail; `unchecked`, with the reason.
        text: the finding.
        remedy: a command to paste, or the change in the settings; "" if there is nothing to do.
    """

    topic: str
    state: State
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Topic:
    """Topic of findings."""

    name: str

    def fine(self, text: str) -> Finding:
        """Return a finding that something is as it has to be."""
        return Finding(self.name, "fine", text)

    def missing(self, text: str, remedy: str = "") -> Finding:
        """Return a finding for which an update would fail."""
        return Finding(self.name, "missing", text, remedy)

    def unchecked(self, text: str, remedy: str = "") -> Finding:
        """Return a finding that something could not be checked, or is advice only."""
        return Finding(self.name, "unchecked", text, remedy)
