"""Update of one stack, or of an environment with the own stacks on it, some at a time."""

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rich.text import Text

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.preview.lines import counts_line
from berth.cli.pulumi.preview.plan import Loaded, StackPlan, events_of, policies_of
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.program import EngineRun, Interrupts, begun_preview
from berth.cli.pulumi.update.progress import progress_bar
from berth.cli.pulumi.update.question import Options, refusal_code
from berth.cli.reach.own_stacks import own_stacks
from berth.cli.reach.up_already import is_up_already
from berth.cli.reach.update import bring_up
from berth.cli.repository.check import check_all
from berth.cli.shell.console import err, out, print_json, print_problems, print_warnings
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError, BerthError
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.components.plan.plan import plan_of
from berth.stacks.files import stack_file
from berth.stacks.preview.report import PreviewContext, Report, report_of

AT_ONCE = max(2, min(16, 2 * (os.cpu_count() or 1)))
"""Engines at once: one waits for the cluster while another one computes. An engine with its
plugins needs about 300 MiB of memory."""

OwnResult = Literal["up", "unchanged", "failed", "not begun"]

_RESULTS: Sequence[OwnResult] = ("up", "unchanged", "failed", "not begun")


@dataclass
class OwnStack:
    """Engineer's own stack in an update of many; one that the backend lacks has no plan."""

    stack: str
    loaded: Loaded
    planned: StackPlan | None = None
    result: OwnResult = "not begun"
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def plan(self, interrupts: Interrupts) -> str:
        """Plan the update; return a line for people, or "" for none."""
        try:
            events = events_of(self.stack, begun_preview(self.stack), interrupts)
        except BerthError as error:
            return self._fail([str(error)])
        report = report_of(
            plan_of(events),
            PreviewContext(self.stack, "engineer", policies=policies_of(self.loaded)),
        )
        self.planned = StackPlan(report, events, self.loaded, {})
        return ""

    @property
    def report(self) -> Report | None:
        """Meaning of the plan; None without one."""
        return self.planned.report if self.planned else None

    def update(self, interrupts: Interrupts) -> str:
        """Run `pulumi up`, in a stack of the backend that is made where there is none."""
        began = time.monotonic()
        if self.planned and is_up_already(self.stack, self.planned):
            self.result = "unchanged"
            return f"✓ {self.stack}: unchanged"
        try:
            if self.planned is None:
                pulumi_stack.create_stack(self.stack)
            engine = EngineRun(["up", "--yes", "--skip-preview", "--stack", self.stack])
            outcome = engine.outcome(lambda _: None, interrupts)
        except BerthError as error:
            return self._fail([str(error)])
        self.seconds = time.monotonic() - began
        if outcome.code:
            found = pulumi_stack.errors_of(outcome.events)
            return self._fail(found or [str(pulumi_stack.failure_of(self.stack, outcome))])
        self.result = "unchanged" if self.report and self.report.verdict == "nothing" else "up"
        return f"✓ {self.stack}: {self.result}, {self.seconds:.0f} s"

    @property
    def document(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "stack": self.stack,
            "result": self.result,
            "seconds": round(self.seconds, 1),
            "errors": self.errors,
        }

    def _fail(self, errors: list[str]) -> str:
        self.result = "failed"
        self.errors = errors
        return f"✗ {self.stack}: {errors[0]}"


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
    line = ", ".join(f"{counts[word]} {word}" for word in _RESULTS if counts[word])
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
