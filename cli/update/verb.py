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

from berth.cli.console import err, out, print_json, print_warnings
from berth.cli.engine import UpdateResult, Verb, update
from berth.cli.preview.tree import tree
from berth.cli.preview.verb import DESTRUCTIVE, planned
from berth.cli.update.losses import Losses, losses_of
from berth.cli.update.progress import shown
from berth.cli.update.tracker import Tracker
from berth.components.core.errors import BAD_INPUT, FAILED
from berth.components.plan.effect import Level
from berth.stacks.preview.report import Report

INTERRUPTED = 130
_NO_LIMIT = 10_000

_WORDS = {"create": "created", "update": "changed", "replace": "replaced", "delete": "deleted", "same": "unchanged"}


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Attributes:
        yes: don't ask where nothing is lost.
        allow_destroy: don't ask where something is lost either.
        as_json: the summary is for a program.
    """

    yes: bool = False
    allow_destroy: bool = False
    as_json: bool = False


def up(stack: str, options: Options) -> int:
    """Bring a stack up; the exit code."""
    report = planned(stack)
    print_warnings(report.warnings)
    if report.verdict != "nothing":
        # A tree is wrapped at its console's width; a log has none.
        Console(stderr=True, highlight=False, width=None if err.is_terminal else _NO_LIMIT).print(tree(report))
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done", markup=False)
        return BAD_INPUT
    refused = _may(f"berth up -s {stack}", report.verdict != "nothing", report.level == Level.DESTROYS, options)
    if refused is not None:
        lost = [str(each) for each in report.sitting(Level.DESTROYS)]
        return _refused(stack, "up", refused, options, lost)
    return _run(stack, "up", report, options, {})


def destroy(stack: str, options: Options) -> int:
    """Take a stack down; the exit code."""
    report = planned(stack, destroy=True)
    if report.verdict == "nothing":
        err.print(f"stack {stack} has nothing that could be destroyed", markup=False)
        return _summed_up(stack, "destroy", options, {"result": "nothing", "seconds": 0, "changes": {}}, {})
    losses = losses_of(stack, of_environment=report.known.kind == "environment")
    _say_losses(stack, report, losses)
    refused = _may(f"berth destroy -s {stack}", True, losses.felt, options)  # noqa: FBT003
    lost = [loss.as_json() for loss in losses.berths]
    if refused is not None:
        return _refused(stack, "destroy", refused, options, lost)
    return _run(stack, "destroy", report, options, {"lost": lost})


def _say_losses(stack: str, report: Report, losses: Losses) -> None:
    parts = ", ".join(part.title for part in report.parts)
    err.print(f"destroys {len(report.changes)} things of stack {stack}: {parts}", markup=False)
    if losses.berths:
        err.print("[bold]Whose berths go, with what runs on them:[/]")
    for loss in losses.berths:
        err.print(f"  {loss}", markup=False, style="" if loss.empty else "red")
    if losses.not_asked:
        err.print(f"whose berths go can't be told: {losses.not_asked}", markup=False, style="yellow")
    if left := losses.stacks_left(stack):
        names = ", ".join(left)
        first = f"; first, for each: berth destroy -s {left[0]}"
        err.print(
            f"Pulumi goes on believing in the berths of other stacks: {names}{first}", markup=False, style="yellow"
        )


def _may(command: str, changes: bool, loses: bool, options: Options) -> int | None:  # noqa: FBT001
    """None where it may be done; else the exit code, the reason said."""
    if not changes or (options.yes and (not loses or options.allow_destroy)):
        return None
    if options.allow_destroy and loses:
        return None
    if sys.stdin.isatty() and not (options.yes and not loses):
        agreed = typer.confirm("Do it, and lose that?" if loses else "Do it?", err=True)
        return None if agreed else DESTRUCTIVE if loses else FAILED
    if loses:
        err.print(f"nothing was done; where that is meant: {command} --yes --allow-destroy", markup=False)
        return DESTRUCTIVE
    err.print(f"nothing was done, since nobody can be asked here; say: {command} --yes", markup=False)
    return BAD_INPUT


def _refused(stack: str, verb: Verb, code: int, options: Options, lost: Sequence[Any]) -> int:
    if options.as_json:
        print_json({"stack": stack, "verb": verb, "result": "refused", "lost": lost})
    return code


def _run(stack: str, verb: Verb, report: Report, options: Options, more: Mapping[str, Any]) -> int:
    tracker = Tracker(report, time.monotonic)
    began = time.monotonic()
    with shown(tracker) as progress:
        ended = update(stack, verb, progress.see, _say_interrupted)
    seconds = round(time.monotonic() - began, 1)
    print_warnings([warning for warning in tracker.warnings if warning not in report.warnings])
    facts = {"result": _result(ended), "seconds": seconds, "changes": _changes(tracker.counts), **more}
    if ended.error is None:
        return _summed_up(stack, verb, options, facts, ended.outputs, tracker)
    _say_failure(stack, verb, tracker, ended)
    if options.as_json:
        print_json({"stack": stack, "verb": verb, **facts, "errors": _errors(tracker, ended)})
    return INTERRUPTED if ended.interrupted else FAILED


def _say_interrupted(times: int) -> None:
    if times == 1:
        err.print("\ninterrupted: Pulumi ends what it is doing; once more ends it at once", markup=False)


def _result(ended: UpdateResult) -> str:
    if ended.interrupted:
        return "interrupted"
    return "failed" if ended.error else "succeeded"


def _changes(counts: Mapping[str, int]) -> dict[str, int]:
    """Without what is only forgotten, such as the reference to another stack."""
    return {operation: count for operation, count in sorted(counts.items()) if count and operation != "discard"}


def _errors(tracker: Tracker, ended: UpdateResult) -> list[str]:
    """Each error once, with the component that it is about."""
    told = [
        f"{title}: {text}" if title else text
        for title, texts in tracker.errors.items()
        for text in dict.fromkeys(texts)
    ]
    return told or [ended.error or ""]


def _say_failure(stack: str, verb: Verb, tracker: Tracker, ended: UpdateResult) -> None:
    for text in _errors(tracker, ended):
        err.print(Text.assemble(("error: ", "bold red"), text))
    if ended.interrupted:
        err.print(f"stack {stack} was interrupted; what was done is in Pulumi's state", markup=False)
    err.print(f"go on with: berth {verb} -s {stack}", markup=False)


def _summed_up(
    stack: str,
    verb: Verb,
    options: Options,
    facts: Mapping[str, Any],
    outputs: Mapping[str, Any],
    tracker: Tracker | None = None,
) -> int:
    if options.as_json:
        components = [
            {"title": each.title, "done": len(each.done), "seconds": round(each.seconds, 1)}
            for each in (tracker.components.values() if tracker else ())
        ]
        print_json({"stack": stack, "verb": verb, **facts, "components": components, "outputs": outputs})
        return 0
    counts = ", ".join(f"{count} {_WORDS.get(operation, operation)}" for operation, count in facts["changes"].items())
    done = {"up": "is up", "destroy": "is down"}[verb]
    out.print(f"[green]✓[/] {stack} {done}: {counts or 'nothing to do'}, {facts['seconds']:.0f} s")
    for name, value in outputs.items():
        if value:
            out.print(f"  {name}: {value}", markup=False)
    for command, meaning in _next(stack, verb, outputs):
        out.print(f"  [bold]{command:<36}[/] {meaning}")
    return 0


def _next(stack: str, verb: Verb, outputs: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """What to do next."""
    if verb == "destroy":
        return [(f"pulumi stack rm {stack} --preserve-config", "forgets the stack too, but not its file")]
    if "rayCluster" in outputs:
        name = outputs["rayCluster"]
        return [
            (f"berth connect {name}", "its dashboard and client here, and a line to submit a job with"),
            (f"berth status -s {stack}", "how it stands"),
        ]
    berths = str(outputs.get("berths") or "").split(", ")
    connect = [(f"berth connect {berths[0]}", "an engineer's dashboard and client here")] if berths[0] else []
    return [(f"berth status -s {stack}", "pools and berths"), *connect]
