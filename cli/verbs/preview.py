"""`berth preview`: what `pulumi up` would do, and what that means for berths, GPUs and money."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.console import LOST, err, out, print_json, print_warnings
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError

if TYPE_CHECKING:
    from berth.stacks.preview.report import Report

CHANGES = 4
"""Exit code if --expect-no-changes meets a change."""


def run(  # noqa: PLR0913 - each is an option
    stack: Stack,
    *,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print markdown for a pull request.")
    ] = False,
    as_json: Json = False,
    fields: Annotated[
        bool, typer.Option("--fields", help="Show also which fields of manifests change.")
    ] = False,
    whole: Annotated[
        bool,
        typer.Option("--all", help="Show each component by itself, also where many change alike."),
    ] = False,
    allow_destroy: Annotated[
        bool,
        typer.Option(
            "--allow-destroy", help="Exit with 0 even if running work or capacity is lost."
        ),
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Compare the state with what there is first.")
    ] = False,
    expect_no_changes: Annotated[
        bool, typer.Option("--expect-no-changes", help="Exit with 4 if anything would change.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Also write the plan to a file, for berth up --plan.", metavar="FILE"
        ),
    ] = None,
) -> int:
    """Show what `pulumi up` would do: changes, losses, whose berths they reach, costs.

    This is the engine's own preview of the same program; it changes nothing. Exit code 0 if there
    is nothing to do or nothing is lost, 3 if running work or capacity is lost, 4 with
    --expect-no-changes if anything would change, 1 if the engine fails or the cluster does not
    answer, 2 for wrong settings or an unknown stack.

    Example: `berth preview -s prod --expect-no-changes`
    """
    if markdown and as_json:
        raise BadInputError("--markdown and --json are two renderings; choose one")
    from berth.cli.pulumi.preview.plan import planned_update
    from berth.cli.reach.reservations import ask_reservations

    plan = planned_update(stack, refresh=refresh)
    reservations = ask_reservations(plan)
    more = [*reservations.lacking, *reservations.not_asked]
    report = replace(plan.report, warnings=[*plan.report.warnings, *more])
    if save:
        from berth.cli.pulumi.preview.saved import save_plan

        save_plan(plan, save)
    print_warnings(report.warnings)
    if as_json:
        from berth.cli.pulumi.preview.document import report_document

        print_json(report_document(report))
    elif markdown:
        from berth.cli.pulumi.preview.markdown import report_markdown

        sys.stdout.write(report_markdown(report, whole=whole))
    else:
        from berth.cli.pulumi.preview.tree import print_tree

        print_tree(report, out, fields=fields, whole=whole)
    return exit_code_of_plan(
        report, allow_destroy=allow_destroy, expect_no_changes=expect_no_changes
    )


def exit_code_of_plan(report: Report, *, allow_destroy: bool, expect_no_changes: bool) -> int:
    """Print why a plan is refused; return the exit code for CI."""
    if report.against_policies:
        err.print("this plan is against a policy")
        return BAD_INPUT
    if expect_no_changes and report.verdict != "nothing":
        err.print("the plan has changes, and --expect-no-changes allows none")
        return CHANGES
    if report.verdict == "destroys" and not allow_destroy:
        err.print("running work, capacity or data would be lost; to accept that: --allow-destroy")
        return LOST
    if report.context.state_only:
        err.print("the plan is not complete: the cluster was not asked")
        return FAILED
    return 0
