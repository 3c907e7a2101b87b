"""Question before an update: whether to do it, and to lose what it takes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import typer

from berth.cli.shell.console import LOST, err, print_json
from berth.components.core.errors import BAD_INPUT, FAILED

Verb = Literal["up", "destroy"]


@dataclass(frozen=True)
class Options:
    """Options of an update."""

    yes: bool = False
    """Don't ask if nothing is lost."""
    allow_destroy: bool = False
    """Don't ask if something is lost either."""
    as_json: bool = False
    """Print the summary for a program."""


def refusal(command: str, options: Options, *, loses: bool) -> int | None:
    """Ask if need be; return None for agreement, else the exit code, with the reason printed."""
    if options.allow_destroy if loses else options.yes:
        return None
    if sys.stdin.isatty() and not (options.yes and not loses):
        if options.yes:
            err.print("--yes alone does not agree to losses; --allow-destroy does")
        agreed = typer.confirm("Apply and lose this work?" if loses else "Apply?", err=True)
        return None if agreed else LOST if loses else FAILED
    if loses:
        err.print(f"nothing was done; to apply it and lose this work: {command} --yes --allow-destroy")
        return LOST
    err.print(f"nothing was done, since there is no terminal to confirm at; to do it: {command} --yes")
    return BAD_INPUT


def refused(stack: str, verb: Verb, code: int, options: Options, lost: Sequence[Any]) -> int:
    """Print a refused update for programs; return its exit code."""
    if options.as_json:
        print_json({"stack": stack, "verb": verb, "result": "refused", "lost": lost})
    return code
