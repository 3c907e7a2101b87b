"""The lab's own error: what is wrong and what mends it, for people; never shown with a traceback."""

from __future__ import annotations

USAGE = 2
"""Exit code when nothing was started: the request can't be carried out as it stands."""

FAILED = 1
"""Exit code when work began and failed."""


class LabError(Exception):
    """Something that the person at the terminal can mend.

    Attributes:
        problem: what is wrong, and what happened because of it.
        remedy: what to do about it.
        code: the exit code of a command that ends with it (`USAGE` or `FAILED`).
    """

    def __init__(self, problem: str, remedy: str, *, code: int = FAILED) -> None:
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy
        self.code = code
