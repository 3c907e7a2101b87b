"""`berth up --all`: an environment, and then all engineers' own stacks on it, many at once."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from pulumi.automation import EngineEvent
from rich.console import Console

from berth.cli import backend, engine
from berth.cli.backend import Asked
from berth.cli.own_program import is_berths_own
from berth.cli.preview.lines import counts_line
from berth.cli.preview.tree import tree
from berth.cli.pulumi_program import Pulumi
from berth.cli.reach.environment import Environment, brought_up, settings_of
from berth.cli.repository.check import Checked, check_all
from berth.cli.shell.console import err, out, print_json, print_problems, print_warnings
from berth.cli.shell.signals import TERMINATED
from berth.cli.update.pool import Pool
from berth.cli.update.ready import unready_of
from berth.cli.update.unchanged import is_unchanged, provider_of
from berth.cli.update.verb import INTERRUPTED, NO_LIMIT, Options, refusal, up
from berth.components.core.errors import BAD_INPUT, FAILED, BadInputError, BerthError
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.components.plan.plan import plan_of
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerBerth
from berth.stacks.preview.report import Known, Report, report_of
from berth.stacks.program import main as program

Result = Literal["up", "unchanged", "failed", "not begun"]


@dataclass
class Own:
    """Engineer's own stack in an update of many.

    Attributes:
        stack: the stack.
        judged: its berth on the environment, as the settings have it.
        report: plan of the update; None for a stack that the backend does not have.
        result: what came of it.
        errors: errors in the engine's and the cluster's words.
        seconds: duration of the update.
    """

    stack: str
    judged: EngineerBerth
    report: Report | None = None
    result: Result = "not begun"
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def fail(self, error: str) -> None:
        """Note an error."""
        self.result = "failed"
        self.errors.append(error)

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs."""
        return {"stack": self.stack, "result": self.result, "seconds": round(self.seconds, 1), "errors": self.errors}


def own_stacks(environment: str) -> list[str]:
    """Return engineers' own stacks on an environment that this project applies.

    A stack with `part: cluster` belongs to the engineer's project.
    """
    found = {name: settings.get("engineer") for name, settings in stack_file.all_settings().items()}
    return [
        name
        for name, engineer in found.items()
        if isinstance(engineer, dict)
        and engineer.get("environment") == environment
        and engineer.get("part") != "cluster"
    ]


def up_all(asked: Asked, options: Options) -> int:
    """Bring an environment up, and then the own stacks on it; return the exit code.

    Raises:
        BadInputError: the stack is not an environment's.
        BerthError: the environment cannot be asked.
    """
    stack = asked.stack
    if "environment" not in settings_of(stack):
        raise BadInputError(f"stack {stack} is not an environment's, so no other stack is on it", "leave --all out")
    checked = check_all([stack, *own_stacks(stack)])
    if wrong := [item for item in checked if item.lines]:
        for item in wrong:
            print_problems(item.stack, item.lines)
        err.print("nothing was done", markup=False)
        return BAD_INPUT
    # A program reads one document.
    with contextlib.redirect_stdout(sys.stderr) if options.as_json else contextlib.nullcontext():
        code = up(asked, replace(options, as_json=False))
    if code != 0:
        return code
    return _Many(stack, _own(checked), options).run()


def _own(checked: Sequence[Checked]) -> list[Own]:
    return [Own(item.stack, item.loaded) for item in checked if isinstance(item.loaded, EngineerBerth)]


class _Many:
    """Update of many own stacks: plan all, ask once, update, wait for all RayClusters."""

    def __init__(self, stack: str, own: Sequence[Own], options: Options) -> None:
        self._stack, self._own, self._options = stack, own, options
        self._began = time.monotonic()
        self._environment: Environment = brought_up(stack)
        self._provider = provider_of(self._environment)
        self._known = backend.stacks()
        # An edited program may have resources of its own, which berth's program would delete.
        self._edited = not is_berths_own()

    def run(self) -> int:
        """Return the exit code."""
        with Pool() as pool:
            return self._run(pool)

    def _run(self, pool: Pool) -> int:
        known = [own for own in self._own if own.stack in self._known]
        pool.run("planning", {own.stack: partial(self._plan, own) for own in known})
        if pool.interrupts:
            return self._end(pool)
        changing = [own for own in self._own if own.result == "not begun"]
        refused = self._ask(changing)
        if refused is not None:
            return refused
        pool.run("updating", {own.stack: partial(self._update, own) for own in changing})
        if not pool.interrupts:
            self._wait(pool)
        return self._end(pool)

    def _plan(self, own: Own, pulumi: Pulumi) -> str:
        """Plan a stack; return a line for people, or "" for none."""
        try:
            state = {} if self._edited else backend.export(pulumi, own.stack)
            if is_unchanged(state, own.judged, self._provider):
                own.result = "unchanged"
                return ""
            events = engine.preview(own.stack, refresh=False, report=lambda _urn: None, inline=self._inline(pulumi))
        except BerthError as error:
            own.fail(str(error))
            return f"✗ {own.stack}: {error}"
        own.report = report_of(plan_of(events), Known(own.stack, "engineer", policies=own.judged.judgment.context))
        if own.report.verdict == "nothing":
            own.result = "unchanged"
        return ""

    def _inline(self, pulumi: Pulumi) -> engine.Inline:
        return engine.Inline(None if self._edited else program.Inline(), pulumi=pulumi)

    def _ask(self, changing: Sequence[Own]) -> int | None:
        """Show the plans, and ask if need be; return None for agreement, else the exit code."""
        reports = [own.report for own in changing if own.report]
        against = [report for report in reports if report.against_policies]
        for report in reports:
            if report in against or report.level == Level.DESTROYS:
                Console(stderr=True, highlight=False, width=None if err.is_terminal else NO_LIMIT).print(tree(report))
            else:
                err.print(f"{report.known.stack}: {counts_line(report)}", markup=False)
            print_warnings(report.warnings)
        unchanged = sum(own.result == "unchanged" for own in self._own)
        new = len(changing) - len(reports)
        err.print(f"own stacks: {new} new, {len(reports)} to change, {unchanged} unchanged", markup=False)
        if against:
            err.print("these plans are against a policy; no own stack was changed", markup=False)
            return BAD_INPUT
        if not changing:
            return None
        loses = any(report.level == Level.DESTROYS for report in reports)
        code = refusal(f"berth up -s {self._stack} --all", self._options, loses=loses)
        if code is not None and self._options.as_json:
            print_json(self._document("refused"))
        return code

    def _update(self, own: Own, pulumi: Pulumi) -> str:
        began = time.monotonic()
        done: Mapping[str, int] = {}

        def see(event: EngineEvent) -> None:
            nonlocal done
            if event.summary_event:
                changes = event.summary_event.resource_changes
                done = {str(operation): count for operation, count in changes.items() if str(operation) != "same"}

        try:
            if own.stack not in self._known:
                backend.init(pulumi, own.stack)
            result = engine.update(own.stack, "up", see, lambda _times: None, inline=self._inline(pulumi))
        except BerthError as error:
            own.fail(str(error))
        else:
            own.result = "up"
            if result.error is not None:
                own.fail(result.error)
        own.seconds = time.monotonic() - began
        counts = ", ".join(f"{count} {operation}" for operation, count in done.items())
        return f"✗ {own.stack}: {own.errors[0]}" if own.errors else f"✓ {own.stack}: {counts}"

    def _wait(self, pool: Pool) -> None:
        """Wait for the RayClusters of all stacks, unchanged ones too."""
        awaited = {own.stack: own.judged.berth for own in self._own if own.result in ("up", "unchanged")}
        for stack, reasons in unready_of(self._environment, awaited, pool.stop).items():
            own = next(own for own in self._own if own.stack == stack)
            own.fail(f"RayCluster is not ready: {'; '.join(reasons)}")
            err.print(f"  ✗ {stack}: {own.errors[-1]}", markup=False)

    def _end(self, pool: Pool) -> int:
        """Print the summary; return the exit code."""
        failed = [own for own in self._own if own.result == "failed"]
        result = "interrupted" if pool.interrupts else "failed" if failed else "succeeded"
        if self._options.as_json:
            print_json(self._document(result))
        else:
            words: tuple[Result, ...] = ("up", "unchanged", "failed", "not begun")
            counts = {word: sum(own.result == word for own in self._own) for word in words}
            line = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
            sign = "[green]✓[/]" if result == "succeeded" else "[bold red]✗[/]"
            seconds = time.monotonic() - self._began
            out.print(f"{sign} {counted(len(self._own), 'own stack')} on {self._stack}: {line}, {seconds:.0f} s")
        for own in failed:
            err.print(f"failed: {own.stack}: {own.errors[0]}", markup=False)
        if result != "succeeded":
            err.print(f"go on with: berth up -s {self._stack} --all", markup=False)
        if pool.interrupts:
            return TERMINATED if pool.terminated else INTERRUPTED
        return FAILED if failed else 0

    def _document(self, result: str) -> dict[str, Any]:
        seconds = round(time.monotonic() - self._began, 1)
        return {
            "stack": self._stack,
            "verb": "up",
            "result": result,
            "seconds": seconds,
            "ownStacks": [own.as_json() for own in self._own],
        }
