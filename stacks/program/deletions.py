"""Warnings of RayClusters, RayJobs and RayServices that an update deletes.

A program does not register what goes, so it compares its stack with the last update. It asks the
engine for the stack's own state, as a StackReference does, without a resource for that. The names
come with the outputs; the whole state is read only where one of them goes.
"""

import os
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime import invoke_async

from berth.components.berth.losses import losses_of, plain
from berth.components.plan.plan import BY_BERTH, ResourceState, Step
from berth.components.ray import RAY_EFFECTS
from berth.stacks.program.waiting import Registered

_NAMES = ("berths", "clusters", "jobs", "services", "rayCluster")
"""Outputs with names of RayClusters, RayJobs or RayServices, of either kind of stack."""

# pulumi 3.250.0, pkg/resource/deploy/builtins.go
_OUTPUTS = "pulumi:pulumi:readStackOutputs"
_RESOURCES = "pulumi:pulumi:readStackResourceOutputs"


async def names_of_last_update() -> Mapping[str, str]:
    """Return the outputs of this stack's last update that have names; none where berth runs it."""
    if os.environ.get(BY_BERTH):
        return {}
    answer = await invoke_async(_OUTPUTS, {"name": _own_name()})
    outputs = answer.get("outputs") or {}
    return {key: str(outputs[key]) for key in _NAMES if outputs.get(key)}


async def warn_of_deletions(before: Mapping[str, str], registered: Registered) -> None:
    """Warn of what an update deletes; `before` has the names of the last update."""
    if all(_names(text) <= _names(registered.outputs.get(key)) for key, text in before.items()):
        return
    stays = set()
    for berth in registered.berths:
        stays |= {str(await item.urn.future()) for item in berth.registered.values()}
    answer = await invoke_async(_RESOURCES, {"stackName": _own_name()})
    for urn, resource in sorted(answer["outputs"].items()):
        if resource["type"] in RAY_EFFECTS and urn not in stays:
            for line in losses_of(_deletion(urn, resource), registered.pools):
                pulumi.log.warn(line)


def _own_name() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _names(text: Any) -> set[str]:
    return set(str(text or "").split(", ")) - {""}


def _deletion(urn: str, resource: Mapping[str, Any]) -> Step:
    # The outputs of an object of Kubernetes are the object.
    before = ResourceState(plain(resource["outputs"]), {}, "")
    name = urn.rpartition("::")[2]
    return Step("delete", urn, resource["type"], name, custom=True, old=before, new=None)
