"""`berth preview`: what `pulumi up` would do, and what that means for berths, GPUs and money."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.help import Section
from berth.components.core.errors import BadInputError

SECTION = Section.DEPLOY


def run(
    stack: Stack,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print markdown for a pull request.")] = False,
    as_json: Json = False,
    allow_destroy: Annotated[
        bool, typer.Option("--allow-destroy", help="Exit with 0 even if running work or capacity is lost.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Compare the state with what there is first.")] = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with 4 if anything would change.")
    ] = False,
) -> int:
    """Show what `pulumi up` would do: changes, losses, whose berths they reach, costs.

    This is the engine's own preview of the same program; it changes nothing. Exit code 0 if there
    is nothing to do or nothing is lost, 3 if running work or capacity is lost, 4 with
    --expect-no-changes if anything would change, 1 if the engine fails, 2 for wrong settings or
    an unknown stack.

    Example: `berth preview -s prod --expect-no-changes`
    """
    if markdown and as_json:
        raise BadInputError("--markdown and --json are two renderings; choose one")
    from berth.cli.pulumi.preview.plan import planned
    from berth.cli.pulumi.preview.show import refusal, show

    report = planned(stack, refresh=refresh).report
    show(report, "markdown" if markdown else "json" if as_json else "tree")
    return refusal(report, allow_destroy=allow_destroy, expect_no_changes=expect_no_changes)
