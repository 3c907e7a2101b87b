"""Destruction of one stack: plan, losses, question, runs of the engine, summary."""

from __future__ import annotations

import time

from berth.cli.pulumi.preview.plan import planned_destruction
from berth.cli.pulumi.update.question import Options, refusal, refused
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.pulumi.update.update import update
from berth.cli.shell.console import err
from berth.cli.verbs.destroy.losses import Losses, losses_of
from berth.components.core.words import counted
from berth.stacks.preview.report import Report


def destroy(stack: str, options: Options) -> int:
    """Destroy a stack's resources; return the exit code."""
    report, outputs = planned_destruction(stack)
    if report.verdict == "nothing":
        err.print(f"stack {stack} has nothing to destroy", markup=False)
        return print_success(Result(stack, "destroy", Tracker(report, time.monotonic), 0, options, {}, "nothing"))
    losses = losses_of(stack, outputs, of_environment=report.known.kind == "environment")
    _print_losses(stack, report, losses)
    lost = [loss.as_json() for loss in losses.berths]
    code = refusal(f"berth destroy -s {stack}", options, loses=losses.felt)
    if code is not None:
        return refused(stack, "destroy", code, options, lost)
    return update(stack, "destroy", report, options, {"lost": lost})


def _print_losses(stack: str, report: Report, losses: Losses) -> None:
    parts = ", ".join(part.title for part in report.parts)
    err.print(f"destroys {counted(len(report.changes), 'resource')} of stack {stack}: {parts}", markup=False)
    if losses.berths:
        err.print("[bold]Berths that are lost, with what runs on them:[/]")
    for loss in losses.berths:
        err.print(f"  {loss}", markup=False, style="" if loss.empty else "red")
    if losses.not_asked:
        err.print(f"cannot tell whose berths are lost: {losses.not_asked}", markup=False, style="yellow")
    if left := losses.stacks_left(stack):
        err.print(
            f"berths of other stacks stay in Pulumi's state: {', '.join(left)};"
            f" first, for each: berth destroy -s {left[0]}",
            markup=False,
            style="yellow",
        )
