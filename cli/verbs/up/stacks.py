"""Update of an environment with the engineers' own stacks on it, some at a time."""

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rich.text import Text

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview.lines import counts_line
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.update.progress import progress_bar
from berth.cli.pulumi.update.question import Options, refusal_code
from berth.cli.reach.own_stacks import own_stacks
from berth.cli.reach.update import bring_up
from berth.cli.repository.check import check_all
from berth.cli.shell.console import err, out, print_json, print_problems, print_warnings
from berth.cli.verbs.up.own_stack import RESULTS, OwnStack
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.stacks.files import stack_file

AT_ONCE = max(2, min(16, 2 * (os.cpu_count() or 1)))
"""Engines at once: one waits for the cluster while another one computes. An engine with its
plugins needs about 300 MiB of memory."""


def up_all(stack: str, options: Options) -> int:
    """Bring an environment up, and then the own stacks on it; return the exit code.

    Raises:
        BadInputError: the stack is not an environment's.
    """
    if "environment" not in stack_file.file_of_stack(stack).settings:
        raise BadInputError(
            f"stack {stack} is not an environment's, so no other stack is on it", "leave --all out"
        )
    # A stack with `part: cluster` belongs to the engineer's project.
    checked = check_all([stack, *own_stacks(stack, without="cluster").values()])
    if wrong := [item for item in checked if item.lines]:
        for item in wrong:
            print_problems(item.stack, item.lines)
        err.print("nothing was done")
        return BAD_INPUT
    # A program reads one document.
    with contextlib.redirect_stdout(sys.stderr) if options.as_json else contextlib.nullcontext():
        code = bring_up(stack, replace(options, as_json=False))
    own = [OwnStack(item.stack, item.loaded) for item in checked[1:] if item.loaded]
    return code or _update(stack, own, options)


def _update(stack: str, own: Sequence[OwnStack], options: Options) -> int:
    """Plan all own stacks, ask once, and update them; return the exit code."""
    began = time.monotonic()
    in_backend = pulumi_stack.stacks_in_backend()
    with Interrupts() as interrupts:
        plans = [item.plan for item in own if item.stack in in_backend]
        _at_once("planning", plans, interrupts)
    changing = [item for item in own if item.result != "failed"]
    refused = None if interrupts.count else _refusal(stack, changing, options)
    if not interrupts.count and refused is None:
        with Interrupts() as interrupts:
            _at_once("updating", [item.update for item in changing], interrupts)
    result = _result_of(own, interrupts, refused=refused is not None)
    seconds = time.monotonic() - began
    if options.as_json:
        document = {"stack": stack, "verb": "up", "result": result, "seconds": round(seconds, 1)}
        print_json(document | {"ownStacks": [item.document for item in own]})
    if refused is not None:
        return refused
    if not options.as_json:
        _print_summary(stack, own, result, seconds)
    _print_what_is_left(stack, own, interrupts)
    if interrupts.count:
        return interrupts.code
    return FAILED if result == "failed" else 0


def _print_what_is_left(stack: str, own: Sequence[OwnStack], interrupts: Interrupts) -> None:
    for item in own:
        if item.result == "failed":
            err.print(f"failed: {item.stack}: {item.errors[0]}")
    if interrupts.count:
        err.print(f"go on with: berth up -s {stack} --all")


def _result_of(own: Sequence[OwnStack], interrupts: Interrupts, *, refused: bool) -> str:
    """Return the result of an update of many, for programs."""
    if refused:
        return "refused"
    if interrupts.count:
        return "interrupted"
    if any(item.result == "failed" for item in own):
        return "failed"
    return "succeeded"


def _print_summary(stack: str, own: Sequence[OwnStack], result: str, seconds: float) -> None:
    counts = Counter(item.result for item in own)
    line = ", ".join(f"{counts[word]} {word}" for word in RESULTS if counts[word])
    sign = ("✓", "green") if result == "succeeded" else ("✗", "bold red")
    text = f" {counted(len(own), 'own stack')} on {stack}: {line or 'none'}, {seconds:.0f} s"
    out.print(Text.assemble(sign, text))


def _at_once(
    what: str, tasks: Sequence[Callable[[Interrupts], str]], interrupts: Interrupts
) -> None:
    """Run tasks, until an interrupt; print the line that each one returns."""

    def begin(task: Callable[[Interrupts], str]) -> str:
        return "" if interrupts.count else task(interrupts)

    with (
        progress_bar() as progress,
        ThreadPoolExecutor(AT_ONCE, thread_name_prefix="engine") as threads,
    ):
        bar = progress.add_task(f"{what} own stacks", total=len(tasks))
        for done, line in enumerate(threads.map(begin, tasks), 1):
            progress.update(bar, completed=done)
            if line:
                progress.console.print(f"  {line}  ({done} of {len(tasks)})")


def _refusal(stack: str, changing: Sequence[OwnStack], options: Options) -> int | None:
    """Show the plans, and ask if need be; return None for agreement, else the exit code."""
    reports = [item.report for item in changing if item.report and item.report.verdict != "nothing"]
    against = [report for report in reports if report.against_policies]
    for report in reports:
        if report in against or report.level == Level.DESTROYS:
            print_tree(report, err)
        else:
            err.print(f"{report.context.stack}: {counts_line(report)}")
        print_warnings(report.warnings)
    new = sum(item.report is None for item in changing)
    unchanged = len(changing) - len(reports) - new
    err.print(f"own stacks: {new} new, {len(reports)} to change, {unchanged} unchanged")
    if against:
        err.print("these plans are against a policy; no own stack was changed")
        return BAD_INPUT
    if not reports and not new:
        return None
    loses = any(report.level == Level.DESTROYS for report in reports)
    return refusal_code(f"berth up -s {stack} --all", options, loses=loses)
