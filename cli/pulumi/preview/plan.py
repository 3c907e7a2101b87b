"""Plan of an update or a destruction: the engine's preview, and what it means for the fleet."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import ValidationError

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.program import Engine, Interrupts, begun
from berth.cli.pulumi.stack import errors_of, failure
from berth.cli.repository.check import check
from berth.cli.shell.console import ProblemsError, err
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, UnreachableError
from berth.components.cluster.owned import owners_of
from berth.components.cluster.rights import may
from berth.components.core.errors import BerthError
from berth.components.gke import ExistingCluster
from berth.components.plan.plan import Event, differences, plan_of
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerBerth, EngineerStack, Environment
from berth.stacks.policies.policy import PolicyContext
from berth.stacks.preview.report import Known, Report, report_of
from berth.stacks.program.login import own_login
from berth.stacks.settings.contract import EnvironmentContract

Loaded = Environment | EngineerBerth | EngineerStack
Ready = Callable[[Loaded, Mapping[str, Any]], bool]
"""Tells from an environment's settings and outputs whether an update would wait for nothing."""

_RELEASES = "**kubernetes:helm.sh/v3:Release::**"
_UNREAD = (
    "Helm releases are left out of this comparison: their record is Secrets, and your identity may"
    " not list these"
)


@dataclass(frozen=True)
class Planned:
    """Plan of a stack, with what it was made of."""

    report: Report
    events: Sequence[Event]
    loaded: Loaded | None
    """The settings; None for a destruction, which reads none."""
    outputs: Mapping[str, Any]
    """Outputs of an environment's last update, secret ones in clear text."""
    cluster: ClusterApi | None = None
    """The environment's cluster, if it could be asked."""
    ready: bool = False
    """All that an update would wait for was ready while the engine previewed."""


_SECONDS = 10
"""Time that a cluster has to answer once the engine has its plan."""


class _Question(threading.Thread):
    """Question to Pulumi for a stack's outputs, then to its cluster, while the engine previews.

    Attributes:
        outputs: outputs of the stack, secret ones in clear text.
        api: its cluster; None if the outputs name none.
        live: RayClusters of its cluster; None if the cluster was not asked.
        not_asked: why it was not asked; "" where there was nothing to ask.
        reads_releases: whether this identity may read Helm's record of releases, which is Secrets.
        ready: whether all that an update would wait for is ready, if that was asked.
    """

    def __init__(
        self, stack: str, *, releases: bool = False, ready: partial[bool] | None = None
    ) -> None:
        super().__init__(daemon=True)
        self._stack, self._releases, self._is_ready = stack, releases, ready
        self.outputs: Mapping[str, Any] = {}
        self.api: ClusterApi | None = None
        self.live: Sequence[Mapping[str, Any]] | None = None
        self.not_asked = f"no answer within {_SECONDS} s"
        self.reads_releases, self.ready = True, False
        self.start()

    def run(self) -> None:
        """Ask."""
        try:
            self.outputs = pulumi_stack.outputs(self._stack)
            self.live = self._live()
        except UnreachableError as error:
            self.not_asked = str(error.of_stack(self._stack))
        except BerthError as error:
            self.not_asked = str(error)
        else:
            self.not_asked = ""
        if self._is_ready and self.api:
            with suppress(BerthError):
                self.ready = self._is_ready(self.outputs)

    def _live(self) -> Sequence[Mapping[str, Any]] | None:
        kubeconfig = self.outputs.get("kubeconfig")
        if not kubeconfig:
            return None
        contract = self.outputs.get("environment")
        named = contract.get("login") if isinstance(contract, Mapping) else None
        text, _ = own_login(
            str(kubeconfig), ExistingCluster.model_validate(named) if named else None
        )
        self.api = api = ClusterApi(text)
        self.reads_releases = not self._releases or may(api, ("list", "", "secrets"))
        return owners_of(api).labeled(api.list(RAY_CLUSTERS)[0])


# A replacement and a deletion, in the engine's words (pulumi, pkg/resource/deploy).
_PROTECTED = ("as it is currently marked for protection", "because it is protected")


def planned(
    stack: str, *, refresh: bool = False, engine: Engine | None = None, ready: Ready | None = None
) -> Planned:
    """Return what `pulumi up` would do to a stack, and what that means.

    `engine` is a preview that has begun already; `ready` is asked while it runs.

    Raises:
        ProblemsError: the settings have problems.
        UnknownStackError: the backend has no such stack.
        BerthError: the engine fails, or Pulumi is not installed.
    """
    checked = check(stack)
    if checked.lines or checked.loaded is None:
        raise ProblemsError(stack, checked.lines)
    loaded = checked.loaded
    # An engineer's plan touches no other RayCluster, so the cluster is not asked.
    look = partial(ready, loaded) if ready else None
    question = (
        _Question(stack, releases=refresh, ready=look) if isinstance(loaded, Environment) else None
    )
    options, unread = ["--refresh"] if refresh else [], list[str]()
    with Interrupts() as interrupts, err.status(f"previewing {stack}"):
        if refresh and question:
            question.join(_SECONDS)
            if not question.reads_releases:
                options, unread = [*options, "--exclude", _RELEASES], [_UNREAD]
        engine = engine or begun(stack, *options)
        before, settings = pulumi_stack.applied(stack), settings_as_json(stack)
        events = events_of(stack, engine, interrupts)
        if question:
            question.join(_SECONDS)
    interrupts.stop()
    edits = [edit for key in before for edit in differences(before[key], settings.get(key) or {})]
    known = Known(stack, loaded.kind, refreshed=refresh, policies=policies_of(loaded), edits=edits)
    if question and isinstance(loaded, Environment):
        known = _of_environment(known, loaded, question)
    report = report_of(plan_of(events), known)
    report = replace(report, warnings=[*report.warnings, *unread])
    if not question:
        return Planned(report, events, loaded, {})
    return Planned(report, events, loaded, question.outputs, question.api, question.ready)


def settings_as_json(stack: str) -> dict[str, Any]:
    """Return the settings in a stack's file as Pulumi records them: as JSON."""
    return dict(json.loads(json.dumps(stack_file.find(stack).settings, default=str)))


def planned_destruction(stack: str) -> Planned:
    """Return what `pulumi destroy` would do."""
    question = _Question(stack)
    with Interrupts() as interrupts, err.status(f"previewing {stack}"):
        events = events_of(
            stack, Engine(["destroy", "--preview-only", "--stack", stack]), interrupts
        )
        question.join(_SECONDS)
    interrupts.stop()
    if question.not_asked and not question.outputs:
        raise BerthError(question.not_asked)  # whose berths would be lost is not known
    kind = "environment" if "environment" in question.outputs else "engineer"
    known = Known(stack, kind, question.live, question.not_asked)
    return Planned(report_of(plan_of(events), known), events, None, question.outputs)


def events_of(stack: str, engine: Engine, interrupts: Interrupts) -> list[Event]:
    """Return the events of a preview; of one that only deletion protection fails too."""
    outcome = engine.outcome(lambda _event: None, interrupts)
    errors = errors_of(outcome.events)
    only_protection = bool(errors) and all(
        any(words in error for words in _PROTECTED) for error in errors
    )
    if outcome.code and not only_protection and not interrupts.count:
        raise failure(stack, outcome)
    return outcome.events


def policies_of(loaded: Loaded) -> PolicyContext | None:
    """Return what a stack's policies judge; None for a berth whose environment is not known."""
    return None if isinstance(loaded, EngineerStack) else loaded.judgment.context


def _of_environment(known: Known, environment: Environment, question: _Question) -> Known:
    """Return what is known, completed by the cluster and the settings as they are and were."""
    rates = {name: pool.hourly_rate for name, pool in environment.settings.pools.items()}
    new, changed = environment.contract(), list[str]()
    with suppress(KeyError, ValidationError):  # there is none, or one of another version of berth
        old = EnvironmentContract.model_validate(question.outputs["environment"])
        # A pool that is taken out of the settings costs what they said at the last update.
        rates = {name: pool.hourly_rate for name, pool in old.pools.items()} | rates
        changed = [
            name
            for name in EnvironmentContract.model_fields
            if getattr(old, name) != getattr(new, name)
        ]
    return replace(
        known,
        live=question.live,
        not_asked=question.not_asked,
        rates={name: rate for name, rate in rates.items() if rate is not None},
        currency=environment.settings.currency,
        changed_outputs=changed,
        pools=environment.resolved.pools,
    )
