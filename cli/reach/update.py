"""Update of one stack: what would be lost, the question, the run; none where all is up already."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from berth.cli.pulumi.preview.plan import Loaded, StackPlan, planned_update
from berth.cli.pulumi.preview.saved import read_plan, refuse_beyond_plan
from berth.cli.pulumi.preview.tree import print_tree
from berth.cli.pulumi.program import EngineRun
from berth.cli.pulumi.update.question import Options, print_refusal, refusal_code
from berth.cli.pulumi.update.runs import run_update
from berth.cli.pulumi.update.summary import Result, print_success
from berth.cli.pulumi.update.tracker import STACK, Tracker
from berth.cli.reach.environment import brought_up
from berth.cli.shell.console import err, print_warnings
from berth.components.core.errors import BAD_INPUT, BerthError
from berth.components.plan.effect import Level
from berth.components.plan.plan import Event
from berth.components.ray.live import ReadinessWait
from berth.stacks.load.stack import EngineerBerth, Environment
from berth.stacks.program import DIGEST_OUTPUT, digest_of
from berth.stacks.program.awaited import awaited_of


def bring_up(
    stack: str, options: Options, engine: EngineRun | None = None, reviewed: Path | None = None
) -> int:
    """Bring a stack up, within a plan if one was reviewed; return the exit code."""
    began = time.monotonic()
    saved = read_plan(reviewed, stack) if reviewed else None
    plan = planned_update(stack, engine=engine)
    report = plan.report
    print_warnings(report.warnings)
    if report.verdict != "nothing":
        print_tree(report, err)
    if report.against_policies:
        err.print("this plan is against a policy; nothing was done")
        return BAD_INPUT
    if saved:
        refuse_beyond_plan(plan, saved)
    if is_up(stack, plan):
        tracker = Tracker(report, time.monotonic, plan.events)
        return print_success(Result(stack, "up", tracker, time.monotonic() - began, options, {}))
    loses = report.level == Level.DESTROYS
    code = (
        None
        if report.verdict == "nothing"
        else refusal_code(f"berth up -s {stack}", options, loses=loses)
    )
    if code is not None:
        return print_refusal(
            stack, "up", code, options, list(map(str, report.sitting(Level.DESTROYS)))
        )
    return run_update(stack, "up", report, options, cluster=plan.cluster)


def is_up(stack: str, plan: StackPlan) -> bool:
    """Return whether an update would change nothing, in the state too, and wait for nothing."""
    try:
        return _state_stays(plan) and _is_ready(stack, plan.loaded, plan.outputs)
    except BerthError:
        return False  # the update has the words for it


def _state_stays(plan: StackPlan) -> bool:
    """Return whether an update would write the state as it is.

    It also writes what is no change of a resource: protection, and outputs of the stack.
    """
    begun = [
        event["resourcePreEvent"]["metadata"]
        for event in plan.events
        if "resourcePreEvent" in event
    ]
    ended = [
        event["resOutputsEvent"]["metadata"] for event in plan.events if "resOutputsEvent" in event
    ]
    if any(step["op"] not in ("same", "read") for step in (*begun, *ended)):
        return False
    return all(
        _before(step, plan) == step.get("new")
        for step in {step["urn"]: step for step in ended}.values()
    )


def _before(step: Event, plan: StackPlan) -> Any:
    """Return a resource before a step, as it has to be after one that changes nothing."""
    old = step.get("old")
    if not old or step["type"] != STACK or not isinstance(plan.loaded, Environment):
        return old
    secret = {name: plan.outputs.get(name) for name in ("environment", "kubeconfig")}
    return old | {"outputs": old["outputs"] | {DIGEST_OUTPUT: digest_of(secret)}}


def _is_ready(stack: str, loaded: Loaded | None, outputs: Mapping[str, Any]) -> bool:
    """Return whether all that an update would wait for is ready."""
    if not isinstance(loaded, Environment | EngineerBerth):
        return False
    berths = loaded.berths if isinstance(loaded, Environment) else [loaded.berth]
    awaited = [resource for berth in berths for resource in awaited_of(berth)]
    if not awaited:
        return True
    wait = ReadinessWait(
        stack,
        brought_up(stack, outputs or None).kubeconfig,
        awaited,
        {berth.manifests.namespace["metadata"]["name"] for berth in berths},
        report=lambda _resource, _text: None,
        put_off=lambda _resource, _namespaces: None,
        once=True,
    )
    return not wait.run()
