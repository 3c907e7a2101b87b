"""Destruction of one stack: plan, losses, question, runs of the engine, summary."""

from __future__ import annotations

import time
from collections.abc import Sequence

from berth.cli.pulumi.preview.plan import planned_destruction
from berth.cli.pulumi.update.question import Options, refusal, refused
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.pulumi.update.update import update
from berth.cli.shell.console import err
from berth.cli.verbs.destroy.losses import Loss, losses_of
from berth.components.core.errors import BerthError
from berth.components.core.words import counted
from berth.stacks.preview.report import Report


def destroy(stack: str, options: Options) -> int:
    """Destroy a stack's resources; return the exit code."""
    report, outputs = planned_destruction(stack)
    if report.verdict == "nothing":
        err.print(f"stack {stack} has nothing to destroy", markup=False)
        return print_success(Result(stack, "destroy", Tracker(report, time.monotonic), 0, options, {}, "nothing"))
    berths: list[Loss] = []
    not_asked = ""
    try:
        berths = losses_of(stack, outputs, of_environment=report.known.kind == "environment")
    except BerthError as error:
        not_asked = str(error)
    _print_losses(stack, report, berths, not_asked)
    lost = [loss.as_json() for loss in berths]
    loses = bool(not_asked) or not all(loss.empty for loss in berths)
    code = refusal(f"berth destroy -s {stack}", options, loses=loses)
    if code is not None:
        return refused(stack, "destroy", code, options, lost)
    return update(stack, "destroy", report, options, {"lost": lost})


def _print_losses(stack: str, report: Report, berths: Sequence[Loss], not_asked: str) -> None:
    parts = ", ".join(part.title for part in report.parts)
    err.print(f"destroys {counted(len(report.changes), 'resource')} of stack {stack}: {parts}", markup=False)
    if berths:
        err.print("[bold]Berths that are lost, with what runs on them:[/]")
    for loss in berths:
        err.print(f"  {loss}", markup=False, style="" if loss.empty else "red")
    if not_asked:
        err.print(f"cannot tell whose berths are lost: {not_asked}", markup=False, style="yellow")
    # Berths of other stacks are lost with the cluster, while their states are not.
    if left := sorted({loss.stack for loss in berths} - {stack}):
        err.print(
            f"berths of other stacks stay in Pulumi's state: {', '.join(left)};"
            f" first, for each: berth destroy -s {left[0]}",
            markup=False,
            style="yellow",
        )
