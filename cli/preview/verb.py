"""`berth preview`: the engine's preview, what it means, and an exit code that CI can go by."""

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
from berth.components.plan.plan import plan_of
from berth.stacks import stack_file
from berth.stacks.load import load
from berth.stacks.policies.policy import House
from berth.stacks.preview.report import Known, Report, report_of
from berth.stacks.preview.words import word_of
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import EnvironmentContract, contract_of, resolve_environment

_NO_LIMIT = 10_000


Rendering = Literal["tree", "markdown", "json"]


DESTRUCTIVE, CHANGES = 3, 4
"""Exit codes of a preview, beside those of errors."""


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Attributes:
        rendering: how the report is shown.
        allow_destroy: a plan that destroys is fine.
        refresh: look first what is really there.
        expect_no_changes: a plan that changes anything is not fine.
    """

    rendering: Rendering = "tree"
    allow_destroy: bool = False
    refresh: bool = False
    expect_no_changes: bool = False


def run(stack: str, options: Options) -> int:
    """Show what `pulumi up` would do to a stack; the exit code.

    Raises:
        Exit: it can't be told: wrong settings, an unknown stack, an engine that fails.
    """
    report = planned(stack, refresh=options.refresh)
    print_warnings(report.warnings)
    _show(report, options.rendering)
    return exit_code(report, options)


def planned(stack: str, *, refresh: bool = False, destroy: bool = False) -> Report:
    """What `pulumi up` would do to a stack, or `pulumi destroy`, and what that means.

    Args:
        stack: the stack.
        refresh: look first what is really there.
        destroy: what `pulumi destroy` would do. Then wrong settings are no matter: they are not asked.

    Raises:
        Exit: it can't be told: wrong settings, an unknown stack, an engine that fails.
    """
    settings, house = _settings(stack) if not destroy else (None, None)
    return _report(stack, settings, house, refresh=refresh, destroy=destroy)


def exit_code(report: Report, options: Options) -> int:
    """What a report comes to for CI."""
    if report.against_policies:
        err.print("this plan is against a policy", markup=False)
        return BAD_INPUT
    if options.expect_no_changes and report.verdict != "nothing":
        err.print("something would change, and --expect-no-changes says that nothing should", markup=False)
        return CHANGES
    if report.level == Level.DESTROYS and not options.allow_destroy:
        err.print("this plan destroys; where that is meant, say --allow-destroy", markup=False)
        return DESTRUCTIVE
    return 0


def _settings(stack: str) -> tuple[EnvironmentSettings | None, House | None]:
    """An environment's settings, None for an engineer's stack; and what the policies are applied with.

    Raises:
        Exit: they are wrong, or there is no such stack.
    """
    found = check(stack)
    if found.lines:
        raise ProblemsError(stack, found.lines)
    if found.kind != "environment":
        return None, found.house
    file = stack_file.read(stack_file.stack_path(stack))
    settings = load(stack, file.settings, file)
    return (settings if isinstance(settings, EnvironmentSettings) else None), found.house


def _report(
    stack: str, settings: EnvironmentSettings | None, house: House | None, *, refresh: bool, destroy: bool
) -> Report:
    """The engine's preview and what it means.

    Raises:
        EngineError: the engine fails.
    """
    # An engineer's plan touches nobody else's RayCluster: its environment's cluster need not be asked.
    asking = Asking(lambda: engine.outputs(stack)) if settings or destroy else None
    with _progress(stack) as seen:
        events = engine.preview(stack, refresh=refresh, report=seen, destroy=destroy)
        answer = asking.answer() if asking else Answer()
    return report_of(plan_of(events), replace(_known(stack, settings, answer, refreshed=refresh), house=house))


def _known(stack: str, settings: EnvironmentSettings | None, answer: Answer, *, refreshed: bool) -> Known:
    if settings is None:
        kind = "environment" if "environment" in answer.outputs else "engineer"
        return Known(stack, kind, live=answer.live, not_asked=answer.not_asked, refreshed=refreshed)
    contract = _contract(answer.outputs)
    rates = {name: pool.hourly_rate for name, pool in settings.pools.items()}
    if contract:
        # A pool that is taken out of the settings costs what they said when it was last brought up.
        rates = {name: pool.hourly_rate for name, pool in contract.pools.items()} | rates
    return Known(
        stack=stack,
        kind="environment",
        live=answer.live,
        not_asked=answer.not_asked,
        rates={name: rate for name, rate in rates.items() if rate is not None},
        currency=settings.currency,
        told=_told(stack, settings, contract),
        refreshed=refreshed,
    )


def _contract(outputs: Mapping[str, Any]) -> EnvironmentContract | None:
    """What engineers' stacks have been told by the last `pulumi up`, where this version of berth can read it."""
    try:
        return EnvironmentContract.model_validate(outputs["environment"])
    except (KeyError, ValidationError):
        return None


def _told(stack: str, settings: EnvironmentSettings, old: EnvironmentContract | None) -> list[str]:
    """What engineers' stacks will be told otherwise than they have been."""
    if old is None:
        return []
    new = contract_of(settings, stack, resolve_environment(settings))
    return [name for name in EnvironmentContract.model_fields if getattr(old, name) != getattr(new, name)]


@contextlib.contextmanager
def _progress(stack: str) -> Iterator[Callable[[str], None]]:
    """On a terminal a line with the time that has passed and what the engine looks at; elsewhere nothing."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(f"previewing {stack}", total=None)

        def seen(urn: str) -> None:
            types, name = urn.split("::", 2)[-1].rsplit("::", 1)
            what = word_of(types.rsplit("$", 1)[-1])
            progress.update(task, description=f"previewing {stack}: {what} {name}")

        yield seen


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
