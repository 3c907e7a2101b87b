"""Stacks that are up already: an update would change nothing and wait for nothing."""

from collections.abc import Mapping
from typing import Any

from berth.cli.pulumi.preview.plan import Loaded, StackPlan
from berth.cli.reach.environment import brought_up
from berth.components.core.errors import BerthError
from berth.components.plan.plan import STACK, Event
from berth.components.ray.live import Awaited, ReadinessWait
from berth.stacks.load.stack import EngineerBerth, Environment
from berth.stacks.program import DIGEST_OUTPUT, SETTINGS_OUTPUT, digest_of
from berth.stacks.program.awaited import awaited_of


def is_up_already(stack: str, plan: StackPlan) -> bool:
    """Return whether an update would change nothing, in the state too, and wait for nothing."""
    try:
        return _state_stays(plan) and _is_ready(stack, plan.loaded, plan.outputs)
    except BerthError:
        return False  # the update has the words for it


def _state_stays(plan: StackPlan) -> bool:
    """Return whether an update would write the state as it is.

    It also writes what is no change of a resource: protection, and outputs of the stack.
    """
    ended: dict[str, Event] = {}
    for event in plan.events:
        if begin := event.get("resourcePreEvent"):
            step = begin["metadata"]
        elif end := event.get("resOutputsEvent"):
            step = end["metadata"]
            ended[step["urn"]] = step
        else:
            continue
        if step["op"] not in ("same", "read"):
            return False
    return all(_before(step, plan) == step.get("new") for step in ended.values())


def _before(step: Event, plan: StackPlan) -> Any:
    """Return a resource before a step, as it has to be after one that changes nothing."""
    old = step.get("old")
    if not old or step["type"] != STACK:
        return old
    digests = {SETTINGS_OUTPUT: plan.judged}
    if isinstance(plan.loaded, Environment):
        secret = {name: plan.outputs.get(name) for name in ("environment", "kubeconfig")}
        digests[DIGEST_OUTPUT] = digest_of(secret)
    return old | {"outputs": old["outputs"] | digests}


def _is_ready(stack: str, loaded: Loaded | None, outputs: Mapping[str, Any]) -> bool:
    """Return whether all that an update would wait for is ready."""
    if not isinstance(loaded, Environment | EngineerBerth):
        return False
    berths = loaded.berths if isinstance(loaded, Environment) else [loaded.berth]
    awaited: list[Awaited] = []
    for berth in berths:
        awaited += awaited_of(berth)
    if not awaited:
        return True
    wait = ReadinessWait(
        stack,
        brought_up(stack, outputs or None).kubeconfig,
        awaited,
        {berth.manifests.namespace["metadata"]["name"] for berth in berths},
        report=lambda _resource, _text: None,
        give_up=lambda _resource, _warning: None,
        once=True,
    )
    return not wait.run()
