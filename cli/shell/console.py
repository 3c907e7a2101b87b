"""The two streams: results go to stdout, everything else to stderr.

Text is printed as it is; only calls with `markup=True` read rich's markup.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from berth.components.core.errors import BadInputError, BerthError

_COLUMNS_OF_NO_TERMINAL = 100
"""Width of tables in a file or a CI log: rich's 80 columns would leave out more of them."""


class _Console(Console):
    """Rich's console without its own end at a closed pipe: silent, with exit code 1."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False)
        # A terminal would break long lines inside words; a file has lines of any length.
        self.soft_wrap = not self.is_terminal
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _COLUMNS_OF_NO_TERMINAL

    def on_broken_pipe(self) -> NoReturn:
        """Leave the error to the command, which ends as for any output."""
        raise  # noqa: PLE0704 - rich calls this method where it handles the BrokenPipeError


LOST = 3
"""Exit code if something would be lost and nobody agreed to it; nothing was changed."""

out = _Console(stderr=False)
err = _Console(stderr=True)


class ProblemsError(BadInputError):
    """Problems in a stack's settings, shown as `berth check` shows them."""

    def __init__(self, stack: str, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.stack = stack
        self.lines = list(lines)


def somebody_agrees(question: str, command: str) -> bool:
    """Return whether somebody agrees; without a terminal, print the command that does not ask."""
    if sys.stdin.isatty():
        return typer.confirm(question, err=True)
    err.print(f"nothing was done, since there is no terminal to confirm at; to do it: {command}")
    return False


def print_text(text: str) -> None:
    """Print a text to stdout as it is: rich would expand tabs, and drop the last line break."""
    sys.stdout.write(text)
    sys.stdout.flush()


def print_json(value: Any) -> None:
    """Print a value for programs at once, as JSON: a command that goes on has readers meanwhile."""
    print_text(json.dumps(value, indent=2) + "\n")


def print_result(document: Any, text: RenderableType, *, as_json: bool, to: Console = out) -> int:
    """Print a result, for programs as JSON; return the exit code of success."""
    if as_json:
        print_json(document)
    else:
        to.print(text)
    return 0


def print_problems(stack: str, lines: Sequence[str]) -> None:
    """Print the problems in a stack's settings to stderr."""
    name = stack if stack.isprintable() and stack else repr(stack)
    err.print(Text.assemble(("✗", "bold red"), f" {name}"))
    for line in lines:
        err.print(f"  {line}")


def print_warnings(warnings: Sequence[str]) -> None:
    """Print warnings to stderr."""
    for warning in warnings:
        err.print(f"warning: {warning}", style="yellow")


def print_error(error: BerthError) -> None:
    """Print an error to stderr."""
    if isinstance(error, ProblemsError):
        print_problems(error.stack, error.lines)
    else:
        err.print(Text.assemble(("error:", "bold red"), f" {error}"))
