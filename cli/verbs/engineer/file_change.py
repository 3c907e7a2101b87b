"""Change of a stack's file: its text before and after."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from berth.components.core import whole_file
from berth.stacks.files import stack_file


@dataclass(frozen=True)
class Change:
    """Text of a file before and after an edit."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change for people."""
        name = stack_file.shown(self.path)
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, name, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def _ends(self) -> str:
        """Return the line breaks of the file, as an editor wrote them."""
        return "\r\n" if self.path.exists() and b"\r\n" in self.path.read_bytes() else "\n"

    def write(self) -> None:
        """Replace the file in one step, with the mode and the line breaks that it has."""
        whole_file.write(self.path, self.after, newline=self._ends())
