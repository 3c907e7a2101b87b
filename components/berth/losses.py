"""Warnings of a program about its RayClusters, RayJobs and RayServices that an update ends."""

import os
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.output import Unknown

from berth.components.core.numbers import whole_numbers
from berth.components.core.plain_secrets import SECRET
from berth.components.plan.effect import Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import LATER
from berth.components.plan.plan import BY_BERTH, ResourceState, Step, differences
from berth.components.ray import RAY_EFFECTS
from berth.components.sharing import Pools


def losses_of(step: Step, pools: Pools) -> list[str]:
    """Return what a change of a RayCluster, RayJob or RayService destroys, in one line each.

    The numbers of pods and GPUs are those of the last update: no cluster is asked.
    """
    units = {name: pool.gpu_unit for name, pool in pools.items()}
    lines = []
    for effect in RAY_EFFECTS[step.type](step, PlannedFleet("", {}, {}, gpu_units=units)):
        if effect.level == Level.DESTROYS:
            who = ", ".join(map(str, effect.sitting))
            reached = f"; affects, as of the last update: {who}" if who else ""
            lines.append(f"{effect.text}{reached}")
    return lines


def losses_hook(berth: str, pools: Pools) -> pulumi.ResourceHook:
    """Return the hook of a berth's main object that warns before an update, in a preview too.

    A deletion needs another way: with a hook for it in the state, `pulumi destroy` refuses to run
    without the program (pulumi 3.250.0, pkg/engine/destroy.go).
    """

    def warn(change: pulumi.ResourceHookArgs) -> None:
        if os.environ.get(BY_BERTH):
            return
        for line in losses_of(_update(change), pools):
            pulumi.log.warn(line)

    return pulumi.ResourceHook(
        f"berth-{berth}-losses", warn, pulumi.ResourceHookOptions(on_dry_run=True)
    )


def _update(change: pulumi.ResourceHookArgs) -> Step:
    before = plain(change.old_inputs)
    after = plain(change.new_inputs)
    return Step(
        operation="update",
        urn=change.urn,
        type=change.type,
        name=change.name,
        custom=True,
        old=ResourceState(before, {}, ""),
        new=ResourceState(after, {}, ""),
        properties=differences(before, after),
    )


def plain(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return values of Pulumi as plain data; secrets and unknown ones read as in a plan."""
    return {key: _plain(whole_numbers(value)) for key, value in (values or {}).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, pulumi.Output):
        return SECRET
    return LATER if isinstance(value, Unknown) else value
