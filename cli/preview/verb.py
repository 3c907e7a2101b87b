"""`berth preview`: the engine's preview, its meaning, and an exit code for CI."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from berth.cli import engine
from berth.cli.check import check
from berth.cli.console import ProblemsError, err, out, print_json, print_warnings
from berth.cli.preview.asking import Answer, Asking
from berth.cli.preview.document import document
from berth.cli.preview.markdown import markdown
from berth.cli.preview.tree import tree
from berth.components.core.errors import BAD_INPUT
from berth.components.plan.effect import Level
from berth.components.plan.plan import BERTH, plan_of
from berth.stacks.load import EngineerBerth, EngineerStack, Environment
from berth.stacks.preview.report import Known, Report, report_of
from berth.stacks.preview.words import word_of
from berth.stacks.settings.resolve import EnvironmentContract

Rendering = Literal["tree", "markdown", "json"]

_NO_LIMIT = 10_000

DESTRUCTIVE, CHANGES = 3, 4
"""Exit codes of a preview, beside those of errors."""


@dataclass(frozen=True)
class Options:
    """Options of a preview.

    Attributes:
        rendering: how the report is shown.
        allow_destroy: accept a plan that destroys.
        refresh: compare the state with what there is first.
        expect_no_changes: refuse a plan that changes anything.
    """

    rendering: Rendering = "tree"
    allow_destroy: bool = False
    refresh: bool = False
    expect_no_changes: bool = False


def run(stack: str, options: Options) -> int:
    """Show what `pulumi up` would do to a stack; return the exit code."""
    report = planned(stack, refresh=options.refresh)
    print_warnings(report.warnings)
    _show(report, options.rendering)
    return exit_code(report, options)


def planned(stack: str, *, refresh: bool = False, destroy: bool = False) -> Report:
    """Return what `pulumi up` would do to a stack, and what that means.

    Args:
        stack: the stack.
        refresh: compare the state with what there is first.
        destroy: the same for `pulumi destroy`, which does not read the settings.
    """
    loaded = None if destroy else _loaded(stack)
    return _report(stack, loaded, refresh=refresh, destroy=destroy)


def exit_code(report: Report, options: Options) -> int:
    """Print why a plan is refused; return the exit code for CI."""
    if report.against_policies:
        err.print("this plan is against a policy", markup=False)
        return BAD_INPUT
    if options.expect_no_changes and report.verdict != "nothing":
        err.print("the plan has changes, and --expect-no-changes allows none", markup=False)
        return CHANGES
    if report.level == Level.DESTROYS and not options.allow_destroy:
        err.print("this plan destroys; to accept that: --allow-destroy", markup=False)
        return DESTRUCTIVE
    return 0


def _loaded(stack: str) -> Environment | EngineerBerth | EngineerStack | None:
    """Load a stack, or report its problems."""
    checked = check(stack)
    if checked.lines:
        raise ProblemsError(stack, checked.lines)
    return checked.loaded


def _report(
    stack: str, loaded: Environment | EngineerBerth | EngineerStack | None, *, refresh: bool, destroy: bool
) -> Report:
    """Run the engine's preview, and return what it means."""
    environment = loaded if isinstance(loaded, Environment) else None
    # An engineer's plan touches no other RayCluster, so the cluster is not asked.
    asking = Asking(stack, lambda: engine.outputs(stack)) if environment or destroy else None
    with _progress(stack) as report:
        events = engine.preview(stack, refresh=refresh, report=report, destroy=destroy)
        answer = asking.answer() if asking else Answer()
        if answer.unrecorded and not refresh and not destroy:
            # The state may lack what a killed update did, so that the plan would, too.
            refresh, events = True, engine.preview(stack, refresh=True, report=report)
    plan = plan_of(events)
    known = Known(
        stack=stack,
        kind="environment" if environment or "environment" in answer.outputs else "engineer",
        live=answer.live,
        not_asked=answer.not_asked,
        refreshed=refresh,
        policies=loaded.judgment.context if isinstance(loaded, Environment | EngineerBerth) else None,
        unrecorded=answer.unrecorded,
        left_over=answer.left_over(stack, {step.name for step in plan.steps if step.type == BERTH}),
    )
    return report_of(plan, _with_settings(known, environment, answer) if environment else known)


def _with_settings(known: Known, environment: Environment, answer: Answer) -> Known:
    """Return what is known, completed by the environment's settings as they are and were."""
    contract = _contract(answer.outputs)
    rates = {name: pool.hourly_rate for name, pool in environment.settings.pools.items()}
    if contract:
        # A pool that is taken out of the settings costs what they said at the last update.
        rates = {name: pool.hourly_rate for name, pool in contract.pools.items()} | rates
    return replace(
        known,
        rates={name: rate for name, rate in rates.items() if rate is not None},
        currency=environment.settings.currency,
        changed_outputs=_changed(contract, environment.contract()) if contract else (),
    )


def _contract(outputs: Mapping[str, Any]) -> EnvironmentContract | None:
    """Return what the last update told engineers' stacks, if this version of berth can read it."""
    try:
        return EnvironmentContract.model_validate(outputs["environment"])
    except (KeyError, ValidationError):
        return None


def _changed(old: EnvironmentContract, new: EnvironmentContract) -> list[str]:
    """Return the fields that engineers' stacks will read another value of."""
    return [name for name in EnvironmentContract.model_fields if getattr(old, name) != getattr(new, name)]


@contextlib.contextmanager
def _progress(stack: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal how long the engine runs and what it looks at."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(f"previewing {stack}", total=None)

        def report(urn: str) -> None:
            types, name = urn.split("::", 2)[-1].rsplit("::", 1)
            what = word_of(types.rsplit("$", 1)[-1])
            progress.update(task, description=f"previewing {stack}: {what} {name}")

        yield report


def _show(report: Report, rendering: Rendering) -> None:
    match rendering:
        case "json":
            print_json(document(report))
        case "markdown":
            sys.stdout.write(markdown(report))
        case _:
            # A tree is wrapped at its console's width; a log or a file has none.
            console = Console(highlight=False, width=None if out.is_terminal else _NO_LIMIT)
            console.print(tree(report))
