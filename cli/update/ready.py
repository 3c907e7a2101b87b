"""Waits for what updates have brought up: of one stack, and of many."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from berth.cli.engine import UpdateResult
from berth.cli.preview.verb import Loaded
from berth.cli.pulumi_program import Pulumi
from berth.cli.reach.environment import Environment, brought_up
from berth.cli.update.progress import Progress, progress_bar
from berth.components.berth import BerthInputs
from berth.components.cluster.api import ClusterApi, ClusterError
from berth.components.cluster.owned import owners_of
from berth.components.core.owner import ENVIRONMENT_LABEL, namespace_of
from berth.components.core.types import parse_duration
from berth.components.ray.evidence import Key
from berth.components.ray.readiness import RAY_CLUSTER, Wait
from berth.stacks.load.stack import EngineerBerth
from berth.stacks.load.stack import Environment as Settings
from berth.stacks.program.awaited import Waits, awaited_of


def ready(stack: str, loaded: Loaded, outputs: Mapping[str, Any] | None, progress: Progress) -> UpdateResult:
    """Wait for everything that a stack's settings say; report what is not ready in time.

    Ctrl-C and SIGTERM end the wait; the update is over by then.

    Args:
        stack: the stack.
        loaded: its settings.
        outputs: its outputs; None if they are not known yet.
        progress: display of the update.
    """
    if isinstance(loaded, Settings):
        berths, environment = loaded.berths, None
    elif isinstance(loaded, EngineerBerth):
        berths, environment = [loaded.berth], None
    else:
        environment = brought_up(stack)
        berths = [loaded.on(environment.contract).berth]
    awaited = [resource for berth in berths for resource in awaited_of(berth)]
    if not awaited:
        return UpdateResult(interrupted=False)
    waits = Waits(
        stack,
        (environment or brought_up(stack, outputs)).kubeconfig,
        awaited,
        {namespace_of(berth.settings.name) for berth in berths},
        lambda resource, text: progress.note(resource.key[1], text),
        lambda resource, going: progress.warn(resource.put_off(stack, going)),
    )
    signals = Pulumi(version=False)
    with signals.pass_signals_on(lambda _times: waits.stop.set()):
        try:
            late = waits.run()
        except ClusterError as error:
            return UpdateResult(signals.interrupts > 0, f"cannot tell whether all is ready: {error}")
    if signals.interrupts:
        return UpdateResult(interrupted=True, error="interrupted", terminated=signals.terminated)
    for resource, reasons in late:
        progress.fail(resource.key[1], resource.problem(reasons))
    return UpdateResult(interrupted=False, error="not everything is ready in time" if late else None)


def unready_of(
    environment: Environment, berths: Mapping[str, BerthInputs], stop: threading.Event
) -> dict[str, list[str]]:
    """Wait for the RayClusters of berths, by stack; return the reasons of those that are not ready.

    Raises:
        ClusterError: the API server does not answer.
    """
    keys: dict[Key, str] = {}
    deadlines: dict[Key, float] = {}
    for stack, berth in berths.items():
        if berth.part != "isolation" and berth.workload.wait.until != "submitted":
            key = namespace_of(berth.settings.name), berth.settings.name
            keys[key], deadlines[key] = stack, parse_duration(berth.workload.wait.timeout)
    if not keys:
        return {}
    name = environment.contract.name
    there = owners_of(ClusterApi(environment.kubeconfig)).of_environment(name)
    with progress_bar() as progress:
        progress.add_task("waiting for RayClusters", total=None)
        found = Wait(
            kind=RAY_CLUSTER,
            kubeconfig=environment.kubeconfig,
            selector=f"{ENVIRONMENT_LABEL}={name}",
            deadlines=deadlines,
            report=lambda _key, _text: None,
            namespaces=set(there.by_namespace),
            put_off=lambda _key, _going: None,
            stop=stop,
        ).run()
    return {keys[key]: reasons for key, reasons in found.items()}
