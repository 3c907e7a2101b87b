"""Question before an update: whether to do it, and to lose what it takes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from berth.cli.shell.console import LOST, err, print_json, somebody_agrees
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


def refusal_code(command: str, options: Options, *, loses: bool) -> int | None:
    """Ask if need be; return None for agreement, else the exit code, with the reason printed."""
    agreed_by_option = options.allow_destroy if loses else options.yes
    if agreed_by_option:
        return None
    if options.yes:
        err.print("--yes alone does not agree to losses; --allow-destroy does")
    if loses:
        agrees = somebody_agrees("Apply and lose this work?", f"{command} --yes --allow-destroy")
        return None if agrees else LOST
    if somebody_agrees("Apply?", f"{command} --yes"):
        return None
    return FAILED if sys.stdin.isatty() else BAD_INPUT


def print_refusal(stack: str, verb: Verb, code: int, options: Options, lost: Sequence[Any]) -> int:
    """Print a refused update for programs; return its exit code."""
    if options.as_json:
        print_json({"stack": stack, "verb": verb, "result": "refused", "lost": lost})
    return code
