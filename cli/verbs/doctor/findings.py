"""Findings of checks: a line, and the command that fixes what is missing."""

from dataclasses import dataclass
from typing import Literal

State = Literal["fine", "warning", "missing", "unchecked"]
"""`fine`; `warning`, which stops no update; `missing`, for which an update would fail;
`unchecked`, with the reason."""


@dataclass(frozen=True)
class DoctorFinding:
    """Finding of a check.

    Attributes:
        topic: what the finding is about, such as `quota`.
        state: whether an update would fail.
        text: what a check found, in one line.
        remedy: commands to paste, or the change in the settings; empty if there is nothing to do.
    """

    topic: str
    state: State
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Topic:
    """Topic of findings, such as `quota`."""

    name: str

    def fine(self, text: str) -> DoctorFinding:
        """Return a finding that nothing is missing."""
        return DoctorFinding(self.name, "fine", text)

    def warning(self, text: str, remedy: str) -> DoctorFinding:
        """Return a finding that stops no update."""
        return DoctorFinding(self.name, "warning", text, remedy)

    def missing(self, text: str, remedy: str) -> DoctorFinding:
        """Return a finding for which an update would fail.

        Args:
            text: what is missing.
            remedy: commands to paste, or the change in the settings; empty where the text has it.
        """
        return DoctorFinding(self.name, "missing", text, remedy)

    def unchecked(self, text: str, remedy: str = "") -> DoctorFinding:
        """Return a finding of what could not be checked, or advice."""
        return DoctorFinding(self.name, "unchecked", text, remedy)


CLUSTER = Topic("cluster")
"""Topic of what a cluster's API server answers."""
