"""`berth preview`: the engine's preview, its meaning, and an exit code for CI."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from berth.cli import backend, engine
from berth.cli.backend import Asked
from berth.cli.own_program import is_berths_own
from berth.cli.preview.asking import Answer, Asking
from berth.cli.preview.document import document
from berth.cli.preview.markdown import markdown
from berth.cli.preview.reduced import backend_without
from berth.cli.preview.tree import tree
from berth.cli.repository.check import check
from berth.cli.shell.console import ProblemsError, err, out, print_json, print_warnings
from berth.cli.update.unchanged import State, Unchanged, settled, unchanged_berths
from berth.components.core.errors import BAD_INPUT, BerthError
from berth.components.plan.effect import Level
from berth.components.plan.plan import BERTH, Plan, destruction_of, plan_of, unchanged_of
from berth.stacks.load.stack import EngineerBerth, EngineerStack, Environment
from berth.stacks.preview.report import Known, Report, report_of
from berth.stacks.preview.words import word_of
from berth.stacks.program.main import Inline
from berth.stacks.settings.contract import EnvironmentContract

Rendering = Literal["tree", "markdown", "json"]
Loaded = Environment | EngineerBerth | EngineerStack

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


@dataclass(frozen=True)
class Planned:
    """Plan of a stack, with what an update does it with.

    Attributes:
        report: what the plan means.
        loaded: the stack; None for a destruction.
        program: the program that was planned, with its outputs; None for an edited one.
        unchanged: URNs of resources that the program leaves out.
        resources: number of resources that the plan looked at.
        is_empty: an update would change neither a resource nor an output.
        outputs: outputs of the stack before the update, secret ones in clear text.
    """

    report: Report
    loaded: Loaded | None = None
    program: Inline | None = None
    unchanged: Sequence[str] = ()
    resources: int = 0
    is_empty: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)


def run(asked: Asked, options: Options) -> int:
    """Show what `pulumi up` would do to a stack; return the exit code."""
    report = planned(asked, refresh=options.refresh).report
    print_warnings(report.warnings)
    _show(report, options.rendering)
    return exit_code(report, options)


def planned(asked: Asked, *, refresh: bool = False, destroy: bool = False) -> Planned:
    """Return what `pulumi up` would do to a stack, and what that means.

    Args:
        asked: questions to the backend about the stack.
        refresh: compare the state with what there is first.
        destroy: the same for `pulumi destroy`, which does not read the settings.
    """
    if destroy:
        return _to_destroy(asked, refresh=refresh)
    stack = asked.stack
    loaded, unchanged = _loaded(stack), Unchanged()
    state, outputs = _known_to_the_backend(asked, loaded)
    if isinstance(loaded, Environment) and is_berths_own() and not refresh:
        unchanged = unchanged_berths(state, loaded)
    return _Planning(stack, loaded, state, outputs).plan(unchanged, refresh=refresh)


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


def _loaded(stack: str) -> Loaded:
    """Load a stack, or report its problems."""
    checked = check(stack)
    if checked.lines or checked.loaded is None:
        raise ProblemsError(stack, checked.lines)
    return checked.loaded


def _known_to_the_backend(asked: Asked, loaded: Loaded) -> tuple[State, Mapping[str, Any]]:
    """Return an environment's state, and a stack's outputs; nothing where the preview says why."""
    try:
        return asked.state_and_outputs() if isinstance(loaded, Environment) else ({}, asked.outputs())
    except BerthError:
        return {}, {}


def _to_destroy(asked: Asked, *, refresh: bool) -> Planned:
    """Return what `pulumi destroy` would do, which runs no program: it deletes what the state has.

    The engine plans it where it may refuse, or an earlier update left something to finish.
    """
    stack = asked.stack
    with _progress(stack) as report:
        state, outputs = asked.state_and_outputs()
        asking = Asking(stack, outputs)
        resources = settled(state)
        if refresh or not resources or any(item.get("protect") for item in resources):
            plan = plan_of(engine.preview(stack, refresh=refresh, report=report, destroy=True))
        else:
            plan = destruction_of(resources)
        answer = asking.answer()
    kind = "environment" if "environment" in answer.outputs else "engineer"
    return Planned(report_of(plan, _known(stack, kind, plan, answer, refreshed=refresh)), outputs=outputs)


class _Planning:
    """Plan of an update by the engine, with an answer of the environment's cluster."""

    def __init__(self, stack: str, loaded: Loaded, state: State, outputs: Mapping[str, Any]) -> None:
        self._stack, self._loaded, self._state, self._outputs = stack, loaded, state, outputs
        self._environment = loaded if isinstance(loaded, Environment) else None
        # An engineer's plan touches no other RayCluster, so the cluster is not asked.
        self._asking = Asking(stack, outputs) if self._environment else None

    def plan(self, unchanged: Unchanged, *, refresh: bool) -> Planned:
        """Run the engine's preview, and return what it means.

        Berths are left out of it only if the rest of the environment stays as it is, and if no
        update was killed: the state would lack what that update did.
        """
        program = Inline(unchanged.names) if is_berths_own() else None
        with _progress(self._stack) as report:
            plan = self._planned(program, unchanged, refresh=refresh, report=report)
            answer = self._asking.answer() if self._asking else Answer()
        late = answer.unrecorded and not refresh
        if late or (unchanged.names and not _only_berths_change(plan)):
            return self.plan(Unchanged(), refresh=refresh or late)
        known = _known(self._stack, self._loaded.kind, plan, answer, refreshed=refresh)
        judged = None if isinstance(self._loaded, EngineerStack) else self._loaded
        known = replace(known, policies=judged.judgment.context if judged else None)
        report_ = report_of(plan, _with_settings(known, self._environment, answer) if self._environment else known)
        is_empty = (
            report_.verdict == "nothing"
            and not known.unrecorded
            and all(step.operation == "same" for step in plan.steps)
            and program is not None
            and program.exported == self._outputs
        )
        return Planned(report_, self._loaded, program, unchanged.urns, len(plan.steps), is_empty, self._outputs)

    def _planned(
        self, program: Inline | None, unchanged: Unchanged, *, refresh: bool, report: Callable[[str], None]
    ) -> Plan:
        """Return the engine's plan, with the resources that it leaves out."""

        def preview(urns: Sequence[str], url: str | None = None) -> Plan:
            inline = engine.Inline(program, urns) if program else None
            return plan_of(engine.preview(self._stack, refresh=refresh, report=report, inline=inline, backend=url))

        if unchanged.resources and not backend.is_service():
            # What fails there may not fail beside the rest of the state; else it fails here too.
            with contextlib.suppress(BerthError, OSError), backend_without(unchanged.urns, self._state) as url:
                plan = preview((), url)
                return replace(plan, steps=[*plan.steps, *unchanged_of(unchanged.resources)])
        return preview(unchanged.urns)


def _only_berths_change(plan: Plan) -> bool:
    return all(step.operation == "same" or f"::{BERTH}" in step.urn for step in plan.steps)


def _known(stack: str, kind: str, plan: Plan, answer: Answer, *, refreshed: bool) -> Known:
    """Return what is known beside a plan."""
    return Known(
        stack=stack,
        kind=kind,
        live=answer.live,
        not_asked=answer.not_asked,
        refreshed=refreshed,
        unrecorded=answer.unrecorded,
        left_over=answer.left_over(stack, {step.name for step in plan.steps if step.type == BERTH}),
    )


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
    if not err.is_terminal:
        yield lambda _urn: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
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
