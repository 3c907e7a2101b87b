"""RayClusters whose new pods wait, because their pool has fewer GPUs than are asked for. Pure.

Settings that alone ask for too much are refused (components/ray/fit.py); here the RayClusters on
the cluster count too, those of other stacks and of nobody's included.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from berth.components.core.words import counted
from berth.components.plan.fleet import NODE_POOL, RAY_CLUSTER, PlannedFleet
from berth.components.plan.occupants import occupant_of
from berth.components.plan.plan import Plan
from berth.components.sharing import Pools


@dataclass(frozen=True)
class Wait:
    """Pool with fewer GPUs, or shares of them, than RayClusters ask for."""

    pool: str
    has: int
    unit: str
    asked: int
    beside: int
    """GPUs of RayClusters that the plan does not have."""
    who: Sequence[str]
    """Owners that start pods there, of which one or more wait: `berth carol`."""
    ray_clusters: Sequence[tuple[str, str]]
    """Namespaces and names of their RayClusters."""

    def __str__(self) -> str:
        beside = f", {self.beside} of them by RayClusters outside this plan" if self.beside else ""
        return (
            f"pool {self.pool} has {counted(self.has, self.unit)}, and {self.asked} are asked"
            f" for{beside}: new pods of {', '.join(self.who)} wait for room"
        )


def waits_of(plan: Plan, fleet: PlannedFleet, pools: Pools) -> list[Wait]:
    """Return the pools, as the settings want them, that have too little after an update."""
    steps = [step for step in plan.steps if step.type == RAY_CLUSTER]
    planned = {
        occupant_of(inputs).key for step in steps for inputs in (step.before, step.after) if inputs
    }
    gone = {occupant_of(step.before).key for step in steps if step.operation == "delete"}
    changed = [
        occupant_of(step.after) for step in steps if step.operation not in ("same", "delete")
    ]
    starting = {occupant.key: occupant for occupant in changed}
    there = {occupant.key: occupant for occupant in fleet.occupants}
    after = {key: occupant for key, occupant in there.items() if key not in gone} | starting
    anew = {step.name for step in plan.changes if step.type == NODE_POOL}
    found = []
    for name, pool in pools.items():
        on = {key: occupant.on[name].gpus for key, occupant in after.items() if name in occupant.on}
        keys = [key for key, gpus in on.items() if gpus and (key in starting or name in anew)]
        if sum(on.values()) > pool.at_most and keys:
            beside = sum(gpus for key, gpus in on.items() if key not in planned)
            who = [f"{after[key].kind} {after[key].name}" for key in keys]
            found.append(Wait(name, pool.at_most, pool.unit, sum(on.values()), beside, who, keys))
    return found
