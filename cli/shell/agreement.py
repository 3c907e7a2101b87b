"""Agreement of somebody at the terminal to what a command would delete or end."""

import sys

import typer

from berth.cli.shell.console import err

LOST = 3
"""Exit code if something would be lost and nobody agreed to it; nothing was changed."""


def agreed(question: str, command: str) -> bool:
    """Return whether somebody agrees; without a terminal, print the command that does not ask."""
    if sys.stdin.isatty():
        return typer.confirm(question, err=True)
    err.print(f"nothing was done; to do it: {command}", markup=False)
    return False
