"""Report of a plan on a terminal, in a pull request or for a program, and why CI refuses it."""

from __future__ import annotations

import sys
from typing import Literal

from rich.console import Console

from berth.cli.pulumi.preview.document import document
from berth.cli.pulumi.preview.markdown import markdown
from berth.cli.pulumi.preview.tree import tree
from berth.cli.shell.console import err, out, print_json, print_warnings
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.effect import Level
from berth.stacks.preview.report import Report

Rendering = Literal["tree", "markdown", "json"]

DESTRUCTIVE, CHANGES = 3, 4
"""Exit codes of a preview, beside those of errors."""

_NO_LIMIT = 10_000


def show(report: Report, rendering: Rendering) -> None:
    """Print a report to stdout, and its warnings to stderr."""
    print_warnings(report.warnings)
    match rendering:
        case "json":
            print_json(document(report))
        case "markdown":
            sys.stdout.write(markdown(report))
        case _:
            print_tree(report, out)


def print_tree(report: Report, console: Console) -> None:
    """Print a report for people, without the warnings.

    A tree is wrapped at its console's width; a log or a file has none.
    """
    width = None if console.is_terminal else _NO_LIMIT
    Console(stderr=console.stderr, highlight=False, width=width).print(tree(report))


def refusal(report: Report, *, allow_destroy: bool, expect_no_changes: bool) -> int:
    """Print why a plan is refused; return the exit code for CI."""
    if report.against_policies:
        err.print("this plan is against a policy", markup=False)
        return BAD_INPUT
    if expect_no_changes and report.verdict != "nothing":
        err.print("the plan has changes, and --expect-no-changes allows none", markup=False)
        return CHANGES
    if report.level == Level.DESTROYS and not allow_destroy:
        err.print("this plan destroys; to accept that: --allow-destroy", markup=False)
        return DESTRUCTIVE
    return 0
