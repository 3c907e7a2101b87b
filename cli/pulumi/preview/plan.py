"""Plan of an update or a destruction: the engine's preview, and what it means for the fleet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.engine import EngineRun, begun_preview
from berth.cli.pulumi.failures import errors_of, failure_of
from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.preview.cluster_view import ClusterView, cluster_view
from berth.cli.repository.check import check_stack
from berth.cli.shell.console import ProblemsError, err
from berth.components.cluster.api import ClusterApi
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of
from berth.components.plan.plan import STACK, Event, Property, differences, plan_of
from berth.components.sharing import Pools, offered_pools
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerBerth, EngineerStack, Environment
from berth.stacks.policies.policy import PolicyContext
from berth.stacks.preview.report import PreviewContext, Report, report_of
from berth.stacks.program import SETTINGS_OUTPUT
from berth.stacks.program.judged import digest_of_files, edited
from berth.stacks.settings.contract import EnvironmentContract

Loaded = Environment | EngineerBerth | EngineerStack

_RELEASES = "**kubernetes:helm.sh/v3:Release::**"
_UNREAD = (
    "Helm releases are left out of this comparison: their record is Secrets, and your identity may"
    " not list these"
)


@dataclass(frozen=True)
class StackPlan:
    """Plan of a stack, with what it was made of."""

    report: Report
    events: Sequence[Event]
    loaded: Loaded | None
    """The settings; None for a destruction, which reads none."""
    outputs: Mapping[str, Any]
    """Outputs of an environment's last update, secret ones in clear text."""
    cluster: ClusterApi | None = None
    """The environment's cluster, if it could be asked."""

    @property
    def judged(self) -> str:
        """Digest of the files that were judged; empty for a destruction."""
        return digest_of_files(self.loaded) if self.loaded else ""


# A replacement and a deletion, in the engine's words (pulumi, pkg/resource/deploy).
_PROTECTED = ("as it is currently marked for protection", "because it is protected")


def planned_update(
    stack: str, *, refresh: bool = False, engine: EngineRun | None = None
) -> StackPlan:
    """Return what `pulumi up` would do to a stack, and what that means.

    Args:
        stack: name of the stack.
        refresh: whether the engine compares with the cluster instead of its state.
        engine: a preview that has begun already.

    Raises:
        ProblemsError: the settings have problems.
        BadInputError: the files were edited meanwhile.
        UnknownStackError: the backend has no such stack.
        BerthError: the engine fails, or Pulumi is not installed.
    """
    loaded = _checked(stack)
    with Interrupts() as interrupts, err.status(f"previewing {stack}"):
        if refresh:
            view = _view_beside(loaded, stack, asks_for_releases=True)
            engine = begun_preview(stack, *_refresh_options(view))
        else:
            # The engine is a process of its own: it previews while the cluster is asked.
            engine = engine or begun_preview(stack)
            view = _view_beside(loaded, stack)
        edits = _edits_since_the_update(stack)
        events = events_of(stack, engine, interrupts)
    interrupts.end_if_interrupted()
    refuse_edited(stack, loaded, events)
    context = PreviewContext(
        stack,
        loaded.kind,
        view.live,
        view.not_asked,
        pools_before=pools_of(loaded),
        state_only=view.state_only,
        refreshed=refresh,
        policies=policies_of(loaded),
        edits=edits,
    )
    if isinstance(loaded, Environment):
        context = _of_environment(context, loaded, view)
    report = report_of(plan_of(events), context)
    if not view.reads_releases:
        report = replace(report, warnings=[*report.warnings, _UNREAD])
    return StackPlan(report, events, loaded, view.outputs, view.api)


def _checked(stack: str) -> Loaded:
    checked = check_stack(stack)
    if checked.lines or checked.loaded is None:
        raise ProblemsError(stack, checked.lines)
    return checked.loaded


def _view_beside(loaded: Loaded, stack: str, *, asks_for_releases: bool = False) -> ClusterView:
    """Return the view of the cluster; an engineer's has the engineer's own RayClusters alone."""
    if isinstance(loaded, Environment):
        return cluster_view(stack, asks_for_releases=asks_for_releases)
    if isinstance(loaded, EngineerBerth):
        environment = loaded.contract.name
        name = loaded.berth.settings.name
    elif loaded.settings.part == "cluster":
        return ClusterView()  # the program itself asks the cluster for the environment
    else:
        environment = loaded.settings.environment
        name = loaded.settings.name or stack
    view = cluster_view(environment)
    own = namespace_of(name)
    live = [cluster for cluster in view.live or () if cluster["metadata"]["namespace"] == own]
    return ClusterView(
        live=None if view.live is None else live,
        not_asked=view.not_asked,
        state_only=view.state_only,
    )


def _refresh_options(view: ClusterView) -> list[str]:
    if view.reads_releases:
        return ["--refresh"]
    return ["--refresh", "--exclude", _RELEASES]


def _edits_since_the_update(stack: str) -> list[Property]:
    """Return what the settings have in another way than those of the last update."""
    settings = settings_as_json(stack)
    edits = []
    for key, before in pulumi_stack.settings_of_last_update(stack).items():
        edits += differences(before, settings.get(key) or {})
    return edits


def settings_as_json(stack: str) -> dict[str, Any]:
    """Return the settings in a stack's file as Pulumi records them: as JSON."""
    return dict(json.loads(json.dumps(stack_file.file_of_stack(stack).settings, default=str)))


def planned_destruction(stack: str) -> StackPlan:
    """Return what `pulumi destroy` would do to a stack, and what that means.

    Raises:
        UnknownStackError: the backend has no such stack.
        BerthError: the engine fails, or nothing can be read of the stack.
    """
    with Interrupts() as interrupts, err.status(f"previewing {stack}"):
        engine = EngineRun(["destroy", "--preview-only", "--stack", stack])
        # The engine is a process of its own: it previews while the cluster is asked.
        view = cluster_view(stack)
        events = events_of(stack, engine, interrupts)
    interrupts.end_if_interrupted()
    if view.not_asked and not view.outputs:
        raise BerthError(view.not_asked)  # whose berths would be lost is not known
    kind = "environment" if "environment" in view.outputs else "engineer"
    before = _last_contract(view)
    pools = offered_pools(before.pools, before.sharing) if before else {}
    context = PreviewContext(stack, kind, view.live, view.not_asked, pools_before=pools)
    return StackPlan(report_of(plan_of(events), context), events, None, view.outputs)


def events_of(stack: str, engine: EngineRun, interrupts: Interrupts) -> list[Event]:
    """Return the events of a preview; of one that only deletion protection fails too.

    Raises:
        BerthError: the preview fails for another reason.
    """
    outcome = engine.outcome(lambda _event: None, interrupts)
    errors = errors_of(outcome.events)
    only_protection = bool(errors) and all(map(_is_of_protection, errors))
    if outcome.code and not only_protection and not interrupts.count:
        raise failure_of(stack, outcome)
    return outcome.events


def refuse_edited(stack: str, loaded: Loaded, events: Sequence[Event]) -> None:
    """Refuse a preview whose program read other files than those that are judged.

    Raises:
        BadInputError: the files were edited while it ran.
    """
    digest = digest_of_files(loaded)
    for event in events:
        step = event.get("resOutputsEvent", {}).get("metadata", {})
        outputs = (step.get("new") or {}).get("outputs") or {}
        if step.get("type") == STACK and outputs.get(SETTINGS_OUTPUT, digest) != digest:
            raise edited(stack)


def is_protected(events: Sequence[Event]) -> bool:
    """Return whether a destruction, by the events of its preview, ends at a protected resource."""
    for event in events:
        step = event.get("resourcePreEvent", {}).get("metadata", {})
        if step.get("op") == "delete" and (step.get("old") or {}).get("protect"):
            return True
    return any(map(_is_of_protection, errors_of(events)))


def _is_of_protection(error: str) -> bool:
    return any(words in error for words in _PROTECTED)


def policies_of(loaded: Loaded) -> PolicyContext | None:
    """Return what a stack's policies judge; None for a berth whose environment is not known."""
    return None if isinstance(loaded, EngineerStack) else loaded.judgment.context


def pools_of(loaded: Loaded) -> Pools:
    """Return the pools that a stack's settings see; none where its environment is not known."""
    return {} if isinstance(loaded, EngineerStack) else loaded.resolved.pools


def _of_environment(
    context: PreviewContext, environment: Environment, view: ClusterView
) -> PreviewContext:
    """Return what is known, completed by the cluster and the settings as they are and were."""
    rates = {name: pool.hourly_rate for name, pool in environment.settings.pools.items()}
    changed: Sequence[str] = ()
    pools_before = context.pools_before
    before = _last_contract(view)
    if before:
        pools_before = {**pools_before, **offered_pools(before.pools, before.sharing)}
        # A pool that is taken out of the settings costs what they said at the last update.
        rates = {name: pool.hourly_rate for name, pool in before.pools.items()} | rates
        changed = before.differing(environment.contract())
    return replace(
        context,
        rates={name: rate for name, rate in rates.items() if rate is not None},
        currency=environment.settings.currency,
        changed_outputs=changed,
        pools=environment.resolved.pools,
        pools_before=pools_before,
    )


def _last_contract(view: ClusterView) -> EnvironmentContract | None:
    """Return the contract of the last update; None without one that this berth reads."""
    try:
        return EnvironmentContract.model_validate(view.outputs["environment"])
    except (KeyError, ValidationError):
        return None
