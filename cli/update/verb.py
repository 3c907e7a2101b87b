"""`berth up` and `berth destroy`: say what would be lost, ask, run the engine, sum up."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from berth.cli.backend import Asked, is_remote, outputs
from berth.cli.engine import Inline, UpdateResult, Verb, update
from berth.cli.preview.tree import tree
from berth.cli.preview.verb import DESTRUCTIVE, Planned, planned
from berth.cli.shell.console import err, out, print_json, print_warnings
from berth.cli.shell.signals import TERMINATED
from berth.cli.update.losses import Loss, Losses, losses_of
from berth.cli.update.phases import Phase, phases_of
from berth.cli.update.progress import Progress
from berth.cli.update.ready import ready
from berth.cli.update.recovery import Recovery
from berth.cli.update.tracker import Tracker
from berth.components.cluster.unrecorded import unrecorded_warning
from berth.components.core.errors import BAD_INPUT, FAILED
from berth.components.core.words import counted
from berth.components.plan.effect import Level
from berth.stacks.load.stack import Environment
from berth.stacks.preview.report import Report
from berth.stacks.program import main as program

INTERRUPTED = 130
NO_LIMIT = 10_000

_WORDS = {"create": "created", "update": "changed", "replace": "replaced", "delete": "deleted", "same": "unchanged"}


@dataclass(frozen=True)
class Options:
    """Options of an update.

    Attributes:
        yes: don't ask if nothing is lost.
        allow_destroy: don't ask if something is lost either.
        as_json: print the summary for a program.
    """

    yes: bool = False
    allow_destroy: bool = False
    as_json: bool = False


def up(asked: Asked, options: Options) -> int:
    """Bring a stack up; return the exit code."""
    stack, plan = asked.stack, planned(asked)
    report = plan.report
    print_warnings(report.warnings)
    if report.verdict != "nothing":
        # A tree wraps at its console's width; a log has none.
        Console(stderr=True, highlight=False, width=None if err.is_terminal else NO_LIMIT).print(tree(report))
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done", markup=False)
        return BAD_INPUT
    recovery = Recovery(stack, plan.outputs)
    left_over = recovery.left_over(report.known)
    _print_left_over(left_over)
    loses = report.level == Level.DESTROYS or any(not loss.empty for loss in left_over)
    nothing = report.verdict == "nothing" and not left_over
    refused = None if nothing else refusal(f"berth up -s {stack}", options, loses=loses)
    if refused is not None:
        lost = [*report.sitting(Level.DESTROYS), *left_over]
        return _refused(stack, "up", refused, options, [str(loss) for loss in lost])
    return _run(stack, "up", plan, options, {}, recovery, left_over)


def destroy(asked: Asked, options: Options) -> int:
    """Destroy a stack's resources; return the exit code."""
    stack, plan = asked.stack, planned(asked, destroy=True)
    report = plan.report
    recovery = Recovery(stack, plan.outputs)
    if report.verdict == "nothing" and not report.known.left_over:
        err.print(f"stack {stack} has nothing to destroy", markup=False)
        return _summarize(stack, "destroy", options, {"result": "nothing", "seconds": 0, "changes": {}}, {})
    losses = losses_of(stack, plan.outputs, of_environment=report.known.kind == "environment")
    _print_losses(stack, report, losses)
    lost = [loss.as_json() for loss in losses.berths]
    refused = refusal(f"berth destroy -s {stack}", options, loses=losses.felt)
    if refused is not None:
        return _refused(stack, "destroy", refused, options, lost)
    return _run(stack, "destroy", plan, options, {"lost": lost}, recovery, recovery.left_over(report.known))


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


def _print_left_over(left_over: Sequence[Loss]) -> None:
    if left_over:
        err.print("[bold]Berths that a killed update left, in neither the settings nor the state; they go:[/]")
    for loss in left_over:
        err.print(f"  {loss}", markup=False, style="" if loss.empty else "red")


def refusal(command: str, options: Options, *, loses: bool) -> int | None:
    """Ask if need be; return None for agreement, else the exit code, with the reason printed."""
    if options.allow_destroy if loses else options.yes:
        return None
    if sys.stdin.isatty() and not (options.yes and not loses):
        agreed = typer.confirm("Do it, and lose that?" if loses else "Do it?", err=True)
        return None if agreed else DESTRUCTIVE if loses else FAILED
    if loses:
        err.print(f"nothing was done; to do it and lose that: {command} --yes --allow-destroy", markup=False)
        return DESTRUCTIVE
    err.print(f"nothing was done, since there is no terminal to confirm at; to do it: {command} --yes", markup=False)
    return BAD_INPUT


def _refused(stack: str, verb: Verb, code: int, options: Options, lost: Sequence[Any]) -> int:
    if options.as_json:
        print_json({"stack": stack, "verb": verb, "result": "refused", "lost": lost})
    return code


def _run(
    stack: str,
    verb: Verb,
    plan: Planned,
    options: Options,
    more: Mapping[str, Any],
    recovery: Recovery,
    left_over: Sequence[Loss],
) -> int:
    report = plan.report
    tracker = Tracker(report, time.monotonic)
    began = time.monotonic()
    with Progress(tracker) as progress:
        if plan.is_empty:
            result = UpdateResult(interrupted=False)
            tracker.counts = {"same": plan.resources}
        else:
            result = _in_phases(stack, verb, plan, recovery, left_over, progress)
        if verb == "up" and result.error is None and plan.loaded:
            result = ready(stack, plan.loaded, plan.program.exported if plan.program else None, progress)
    seen = {*report.warnings, unrecorded_warning(stack)}
    print_warnings([warning for warning in tracker.warnings if warning not in seen])
    facts = {
        "result": "interrupted" if result.interrupted else "succeeded" if result.error is None else "failed",
        "seconds": round(time.monotonic() - began, 1),
        # What Pulumi only forgets, such as the reference to another stack, is not a change.
        "changes": {key: count for key, count in sorted(tracker.counts.items()) if count and key != "discard"},
        **more,
    }
    if result.error is None:
        return _summarize(stack, verb, options, facts, _shown(stack, plan) if verb == "up" else {}, tracker)
    # An engine that is interrupted early ends without a word of its own.
    errors = _errors(tracker) or ([] if result.interrupted else [result.error])
    for text in errors:
        err.print(Text.assemble(("error: ", "bold red"), text))
    if result.interrupted:
        err.print(f"stack {stack} was interrupted; Pulumi's state has what was done", markup=False)
    err.print(f"go on with: berth {verb} -s {stack}", markup=False)
    if verb == "destroy" and result.interrupted:
        # The cluster goes on with deletions that the engine no longer waits for, and the state
        # still has those objects.
        err.print(
            f"or bring it back with: pulumi refresh -s {stack} --yes --clear-pending-creates, then berth up -s {stack}",
            markup=False,
        )
    if options.as_json:
        print_json({"stack": stack, "verb": verb, **facts, "errors": errors})
    if result.interrupted:
        return TERMINATED if result.terminated else INTERRUPTED
    return FAILED


def _shown(stack: str, plan: Planned) -> Mapping[str, Any]:
    """Return the outputs of a stack that are not secret."""
    if plan.program is None:
        return outputs(stack, secrets=False)
    return {name: value for name, value in plan.program.exported.items() if name not in plan.program.secret}


def _in_phases(
    stack: str, verb: Verb, plan: Planned, recovery: Recovery, left_over: Sequence[Loss], progress: Progress
) -> UpdateResult:
    """Run the phases of an update; return the result of the last one that ran."""
    report = plan.report
    first, *rest = phases_of(report, verb, remote=is_remote())
    # What a killed update has deleted or changed, the state has as it was before.
    refresh = report.known.unrecorded and verb == "up"
    result = _in_phase(stack, verb, first, plan, recovery, progress, refresh=refresh)
    if result.error is None:
        recovery.remove(left_over)
    if verb == "up" and rest:
        recovery = Recovery(stack)  # the first phase may have created the cluster
    for phase in rest:
        if result.error is None:
            result = _in_phase(stack, verb, phase, plan, recovery, progress, refresh=refresh)
    if result.error is None and report.known.unrecorded:
        recovery.end()
    return result


def _in_phase(
    stack: str, verb: Verb, phase: Phase, plan: Planned, recovery: Recovery, progress: Progress, *, refresh: bool
) -> UpdateResult:
    phase = recovery.begin(phase)
    result = update(
        stack,
        verb,
        progress.see,
        _print_interrupted,
        only=phase.only,
        checkpoints=phase.checkpoints,
        refresh=refresh,
        inline=_inline(plan, phase),
    )
    if not phase.checkpoints and result.recorded:
        recovery.end()
    return result


def _inline(plan: Planned, phase: Phase) -> Inline | None:
    """Return the program of a phase, which registers no berths where the phase leaves all out."""
    if phase.only == "platform" and plan.program and isinstance(plan.loaded, Environment):
        return Inline(program.Inline({inputs.settings.name for inputs in plan.loaded.berths}))
    return Inline(plan.program, plan.unchanged) if plan.program else None


def _print_interrupted(times: int) -> None:
    if times == 1:
        err.print("\ninterrupted: Pulumi finishes what it is doing; Ctrl-C again ends it at once", markup=False)


def _errors(tracker: Tracker) -> list[str]:
    """Return each error once, with the component that it is about."""
    return [
        f"{title}: {text}" if title else text
        for title, texts in tracker.errors.items()
        for text in dict.fromkeys(texts)
    ]


def _summarize(
    stack: str,
    verb: Verb,
    options: Options,
    facts: Mapping[str, Any],
    outputs: Mapping[str, Any],
    tracker: Tracker | None = None,
) -> int:
    if options.as_json:
        components = [
            {"title": component.title, "done": len(component.done), "seconds": round(component.seconds, 1)}
            for component in (tracker.components.values() if tracker else ())
        ]
        print_json({"stack": stack, "verb": verb, **facts, "components": components, "outputs": outputs})
        return 0
    counts = ", ".join(f"{count} {_WORDS.get(operation, operation)}" for operation, count in facts["changes"].items())
    done = {"up": "is up", "destroy": "is down"}[verb]
    out.print(f"[green]✓[/] {stack} {done}: {counts or 'nothing to do'}, {facts['seconds']:.0f} s")
    for name, value in outputs.items():
        if value:
            out.print(f"  {name}: {value}", markup=False)
    for command, meaning in _next_commands(stack, verb, outputs):
        out.print(f"  [bold]{command:<36}[/] {meaning}")
    return 0


def _next_commands(stack: str, verb: Verb, outputs: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    status = f"berth status -s {stack}"
    if verb == "destroy":
        return [(f"pulumi stack rm {stack} --preserve-config", "deletes the stack too, but not its file")]
    if name := outputs.get("rayCluster"):
        return [
            (f"berth connect {name}", "dashboard and client on this machine, and a line to submit a job"),
            (status, "state"),
        ]
    berth = str(outputs.get("berths") or "").split(", ")[0]
    connect = [(f"berth connect {berth}", "an engineer's dashboard and client on this machine")] if berth else []
    return [(status, "pools and berths"), *connect]
