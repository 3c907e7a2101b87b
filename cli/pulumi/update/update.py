"""Runs of the engine for an update that was agreed to, with progress and summary."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from berth.cli.pulumi.program import Interrupts
from berth.cli.pulumi.stack import failure
from berth.cli.pulumi.update.progress import Progress
from berth.cli.pulumi.update.question import Options, Verb
from berth.cli.pulumi.update.runs import carry_out, runs_of
from berth.cli.pulumi.update.summary import Result, print_failure, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.shell.console import print_warnings
from berth.components.plan.pending import remedy_of
from berth.stacks.preview.report import Report


def update(stack: str, verb: Verb, report: Report, options: Options, more: Mapping[str, Any] | None = None) -> int:
    """Run an update that was agreed to, and sum it up; return the exit code.

    Args:
        stack: the stack.
        verb: `up` or `destroy`.
        report: what the plan means.
        options: the options.
        more: fields of the summary for programs, beside those of every update.
    """
    tracker = Tracker(report, time.monotonic)
    began = time.monotonic()
    with Interrupts() as interrupts, Progress(tracker) as progress:
        outcome = carry_out(stack, verb, runs_of(report, verb), progress.see, interrupts)
    warnings = [remedy_of(warning, stack) or warning for warning in tracker.warnings]
    print_warnings([warning for warning in warnings if warning not in report.warnings])
    result = Result(stack, verb, tracker, time.monotonic() - began, options, dict(more or {}))
    if not outcome.code:
        return print_success(result)
    return print_failure(result, str(failure(stack, outcome)), interrupts)
