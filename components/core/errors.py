"""Error base of berth: a failure that people see has an exit code, a place and a remedy."""

from typing import ClassVar

BAD_INPUT = 2
"""Exit code: the input is wrong, and nothing was changed."""

FAILED = 1
"""Exit code: work began and failed, or something could not be asked."""


class BerthError(Exception):
    """Failure that is reported as text and an exit code, never as a traceback.

    Args:
        problem: what is wrong.
        remedy: the command or value that fixes it; "" where the problem's text has it.
        place: file and line, or another place to look at; "" for none.
        code: exit code; by default that of the class.
    """

    default_code: ClassVar[int] = FAILED

    def __init__(
        self, problem: str, remedy: str = "", *, place: str = "", code: int | None = None
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.place = place
        self.code = self.default_code if code is None else code
        where = f"{place}: " if place else ""
        after = f"\n{remedy}" if remedy else ""
        super().__init__(f"{where}{problem}{after}")


class BadInputError(BerthError):
    """Input that cannot be used: a setting, an argument, a file. Nothing was changed."""

    default_code = BAD_INPUT
