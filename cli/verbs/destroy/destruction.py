"""Destruction of one stack: plan, losses, question, runs of the engine, summary."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from berth.cli.pulumi.lock import refuse_locked
from berth.cli.pulumi.preview.plan import is_protected, planned_destruction
from berth.cli.pulumi.update.question import Options, print_refusal, refusal_code
from berth.cli.pulumi.update.runs import run_update
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import Tracker
from berth.cli.reach.berths import LiveBerth, names_of
from berth.cli.reach.current_work import CurrentWork, running_on
from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.shell.console import err
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, Object
from berth.components.cluster.owned import owners_of
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.words import counted
from berth.components.ray.live import condition_of
from berth.stacks.preview.report import Report

_AT_ONCE = 16
"""Berths that are asked at the same time what runs on them."""


@dataclass(frozen=True)
class Loss:
    """A berth that is lost, and the work that runs on it."""

    berth: LiveBerth
    running: CurrentWork

    def __str__(self) -> str:
        state = condition_of(self.berth.cluster).state
        pods = counted(self.running.pods, "pod")
        what = [f"{state}, {pods}, of stack {self.berth.stack}", *self.running.work]
        if self.running.unknown:
            what.append(f"cannot tell what runs on it: {self.running.unknown}")
        if self.running.note:
            what.append(self.running.note)
        return f"{self.berth.name}: {'; '.join(what)}"

    def as_json(self) -> dict[str, Any]:
        """Return the loss for programs."""
        return {
            "name": self.berth.name,
            "namespace": self.berth.namespace,
            "stack": self.berth.stack,
            "state": condition_of(self.berth.cluster).state,
            "pods": self.running.pods,
            "jobs": self.running.work,
            "unknown": self.running.unknown,
        }


def destroy_stack(stack: str, options: Options) -> int:
    """Destroy a stack's resources; return the exit code.

    Raises:
        BadInputError: a resource is protected: the engine would delete all others first.
    """
    refuse_locked(stack)
    planned = planned_destruction(stack)
    report = planned.report
    if is_protected(planned.events):
        raise BadInputError(
            f"the cluster of stack {stack} has deletion protection, so the destruction would fail"
            " when everything on it is gone; nothing was deleted",
            "write `cluster: {deletionProtection: false}`, in production also `policies: {waived:"
            f" {{deletion-protection: REASON}}}}`; then berth up -s {stack}, and destroy it again"
            " (berth docs admin#removal)",
        )
    if report.verdict == "nothing":
        err.print(f"stack {stack} has nothing to destroy")
        return print_success(
            Result(stack, "destroy", Tracker(report, time.monotonic), 0, options, {}, "nothing")
        )
    berths: list[Loss] = []
    not_asked = ""
    try:
        berths = losses_of(
            stack, planned.outputs, of_environment=report.context.kind == "environment"
        )
    except BerthError as error:
        not_asked = str(error)
    _print_losses(stack, report, berths, not_asked)
    lost = [loss.as_json() for loss in berths]
    loses = bool(not_asked) or any(loss.running.pods for loss in berths)
    code = refusal_code(f"berth destroy -s {stack}", options, loses=loses)
    if code is not None:
        return print_refusal(stack, "destroy", code, options, lost)
    return run_update(stack, "destroy", planned, options, {"lost": lost})


def _print_losses(stack: str, report: Report, berths: Sequence[Loss], not_asked: str) -> None:
    parts = ", ".join(part.title for part in report.parts)
    err.print(f"destroys {counted(len(report.changes), 'resource')} of stack {stack}: {parts}")
    if berths:
        err.print("Berths that are lost, with what runs on them:", style="bold")
    for loss in berths:
        err.print(f"  {loss}", style="red" if loss.running.pods else "")
    if not_asked:
        err.print(f"cannot tell whose berths are lost: {not_asked}", style="yellow")
    # Berths of other stacks are lost with the cluster, while their states are not.
    if left := sorted({loss.berth.stack for loss in berths} - {stack}):
        err.print(
            f"berths of other stacks stay in Pulumi's state: {', '.join(left)};"
            f" first, for each: berth destroy -s {left[0]}",
            style="yellow",
        )


def losses_of(stack: str, outputs: Mapping[str, Any], *, of_environment: bool) -> list[Loss]:
    """Return the berths that are lost with a stack; with an environment's all on its cluster."""
    try:
        environment = brought_up(stack, outputs)
    except NotUpError:
        return []
    api = ClusterApi(environment.kubeconfig)
    owners = owners_of(api).of_environment(environment.contract.name)
    if not of_environment:
        owners = owners.of_stack(stack)

    def loss(cluster: Object) -> Loss:
        name = next(iter(names_of([cluster])), cluster["metadata"]["name"])
        berth = LiveBerth(name, environment, api, cluster)
        try:
            return Loss(berth, running_on(berth))
        except BerthError as error:
            return Loss(berth, CurrentWork(pods=len(berth.pods()), unknown=str(error)))

    # Each head answers in the time that a Python takes to start there.
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="loss") as threads:
        losses = threads.map(loss, owners.owned_objects(api.list(RAY_CLUSTERS)[0]))
        return sorted(losses, key=lambda loss: loss.berth.name)
