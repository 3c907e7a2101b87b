"""Terminal whose screen can be read: a program runs in it, and its screen at any time is text.

It knows the control sequences that rich, Pulumi and kubectl write: colors, lines that are written
again, and a cursor that moves.
"""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[=>78])")
_COLORS = "black red green yellow blue magenta cyan white".split()


class UnfinishedError(Exception):
    """A program that did not end in time, or failed."""


@dataclass(frozen=True)
class Style:
    """Look of a character: a color of the terminal's eight, "" for its own."""

    color: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False


@dataclass(frozen=True)
class Run:
    """Characters of one line that look the same, and the column where they begin."""

    column: int
    text: str
    style: Style


Row = tuple[Run, ...]


@dataclass
class Screen:
    """Characters of a terminal, and its cursor."""

    width: int
    height: int
    _lines: list[list[tuple[str, Style]]] = field(default_factory=lambda: [[]])
    _row: int = 0
    _column: int = 0
    _style: Style = field(default_factory=Style)

    def write(self, text: str) -> None:
        """Show what a program wrote."""
        end = 0
        for match in _SEQUENCE.finditer(text):
            self._plain(text[end : match.start()])
            if match[2]:
                self._control(match[1], match[2])
            end = match.end()
        self._plain(text[end:])

    def rows(self) -> tuple[Row, ...]:
        """Lines of the screen, the last `height` of them."""
        return tuple(_runs(line) for line in self._lines[-self.height :])

    def _plain(self, text: str) -> None:
        for character in text:
            if character == "\n":
                self._row += 1
                while len(self._lines) <= self._row:
                    self._lines.append([])
            elif character == "\r":
                self._column = 0
            elif character >= " ":
                if self._column >= self.width:
                    self._column = 0
                    self._plain("\n")
                line = self._lines[self._row]
                line.extend([(" ", Style())] * (self._column + 1 - len(line)))
                line[self._column] = (character, self._style)
                self._column += 1

    def _control(self, given: str, kind: str) -> None:
        numbers = [int(number) for number in given.split(";") if number.isdigit()]
        count = numbers[0] if numbers else 1
        if kind == "A":
            self._row = max(self._row - count, 0)
        elif kind == "G":
            self._column = count - 1
        elif kind == "K":
            line = self._lines[self._row]
            del line[0 if numbers[:1] == [2] else self._column :]
        elif kind == "J":
            del self._lines[self._row + 1 :]
        elif kind == "m":
            self._look(numbers or [0])

    def _look(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number == 0:
                self._style = Style()
            elif number == 1:
                self._style = replace(self._style, bold=True)
            elif number == 2:  # noqa: PLR2004
                self._style = replace(self._style, dim=True)
            elif number == 3:  # noqa: PLR2004
                self._style = replace(self._style, italic=True)
            elif number == 22:  # noqa: PLR2004
                self._style = replace(self._style, bold=False, dim=False)
            elif number in range(30, 38) or number in range(90, 98):
                self._style = replace(self._style, color=_COLORS[number % 10])
            elif number == 39:  # noqa: PLR2004
                self._style = replace(self._style, color="")


def _runs(line: Sequence[tuple[str, Style]]) -> Row:
    runs: list[Run] = []
    for column, (character, style) in enumerate(line):
        if runs and runs[-1].style == style:
            runs[-1] = replace(runs[-1], text=runs[-1].text + character)
        else:
            runs.append(Run(column, character, style))
    return tuple(run for run in runs if run.text.strip())


def output(
    command: Sequence[str],
    environment: Mapping[str, str],
    width: int,
    height: int,
    seconds: float = 600,
) -> Iterator[tuple[float, str]]:
    """Run a program in a terminal; yield what it writes, with the seconds since its start.

    Raises:
        UnfinishedError: it did not end in time, or failed.
    """
    own, its_side = os.openpty()
    fcntl.ioctl(its_side, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    began = time.monotonic()
    with subprocess.Popen(
        command, stdin=its_side, stdout=its_side, stderr=its_side, env=environment
    ) as process:
        os.close(its_side)
        left = b""
        while select.select([own], [], [], began + seconds - time.monotonic())[0]:
            try:
                read = os.read(own, 1 << 16)
            except OSError:  # Linux: nobody writes any more
                break
            if not read:
                break
            text, left = _decoded(left + read)
            yield time.monotonic() - began, text
        else:
            process.kill()
    os.close(own)
    if process.returncode:
        raise UnfinishedError(f"`{' '.join(command)}` ended with exit code {process.returncode}")


def _decoded(data: bytes) -> tuple[str, bytes]:
    """Text of bytes, and the bytes of a character or control sequence that is not complete."""
    cut = len(data)
    if (escape := data.rfind(b"\x1b", max(cut - 20, 0))) >= 0 and not _SEQUENCE.match(
        data[escape:].decode("latin-1")
    ):
        cut = escape
    try:
        return data[:cut].decode(), data[cut:]
    except UnicodeDecodeError as error:
        return data[: error.start].decode(), data[error.start :]
