"""The two streams: what was asked for goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

import typer
from rich.console import Console

BAD_INPUT = 2
"""Exit code where the input is wrong and nothing was done."""

_COLUMNS_OF_NO_TERMINAL = 140
"""How wide a table may be in a file or a CI's log: rich would take 80 there, which cuts names in two."""


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, soft_wrap=True, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _COLUMNS_OF_NO_TERMINAL
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def print_json(value: Any) -> None:
    """Print a value for programs: JSON, whatever the terminal."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def fail(message: str, code: int) -> NoReturn:
    """Say on stderr what is wrong and end.

    Raises:
        Exit: always.
    """
    err.print(f"[bold red]error:[/] {_escape(message)}")
    raise typer.Exit(code)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")
