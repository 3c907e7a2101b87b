"""Pools with fewer GPUs than RayClusters ask for after an update, so that new pods wait. Pure.

Settings that alone ask for too much are refused (components/ray/rules); here the RayClusters on
the cluster count too, those of other stacks and of nobody's included.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.plan.fleet import NODE_POOL, RAY_CLUSTER, PlannedFleet
from berth.components.plan.occupants import Occupant, occupant_of
from berth.components.plan.plan import Plan
from berth.components.sharing import Pool, Pools

_Key = tuple[str, str]
"""Namespace and name of a RayCluster."""


@dataclass(frozen=True)
class Shortage:
    """Pool with fewer GPUs, or shares of them, than RayClusters ask for."""

    pool: str
    has: int
    unit: str
    gpu_unit: GpuUnit
    """Unit of the GPUs: a whole one, a share of one or a MIG instance."""
    asked: int
    beside: int
    """GPUs of RayClusters that the plan does not have."""
    who: Sequence[str]
    """Owners that start pods there, of which one or more wait: `berth carol`."""
    ray_clusters: Sequence[_Key]
    """Namespaces and names of their RayClusters."""

    def __str__(self) -> str:
        beside = f", {self.beside} of them by RayClusters outside this plan" if self.beside else ""
        return (
            f"pool {self.pool} has {self.gpu_unit.amount(self.has)}, and {self.asked} are asked"
            f" for{beside}: new pods of {', '.join(self.who)} wait for room"
        )


@dataclass(frozen=True)
class _RayClusters:
    """RayClusters after an update.

    Attributes:
        after: all RayClusters on the environment's cluster.
        planned: those that the plan has, changed or not.
        starting: those that the plan creates or changes.
    """

    after: Mapping[_Key, Occupant]
    planned: Collection[_Key]
    starting: Collection[_Key]


def shortages_of(plan: Plan, fleet: PlannedFleet, pools: Pools) -> list[Shortage]:
    """Return the pools that have too little after an update.

    Args:
        plan: plan of the engine.
        fleet: fleet that the plan changes.
        pools: pools as the settings want them.
    """
    ray_clusters = _ray_clusters(plan, fleet)
    changed_pools = {step.name for step in plan.changes if step.type == NODE_POOL}
    shortages = []
    for name, pool in pools.items():
        shortage = _shortage_of(name, pool, ray_clusters, is_changed=name in changed_pools)
        if shortage:
            shortages.append(shortage)
    return shortages


def _ray_clusters(plan: Plan, fleet: PlannedFleet) -> _RayClusters:
    planned: set[_Key] = set()
    gone: set[_Key] = set()
    starting: dict[_Key, Occupant] = {}
    for step in plan.steps:
        if step.type != RAY_CLUSTER:
            continue
        if step.before:
            planned.add(occupant_of(step.before).key)
        if step.operation == "delete":
            gone.add(occupant_of(step.before).key)
            continue
        occupant = occupant_of(step.after)
        planned.add(occupant.key)
        if step.operation != "same":
            starting[occupant.key] = occupant
    after = {occupant.key: occupant for occupant in fleet.occupants if occupant.key not in gone}
    return _RayClusters(after | starting, planned, starting)


def _shortage_of(
    name: str, pool: Pool, ray_clusters: _RayClusters, *, is_changed: bool
) -> Shortage | None:
    """Return the shortage of a pool, on which new pods start; None without one."""
    gpus: dict[_Key, int] = {}
    for key, occupant in ray_clusters.after.items():
        if name in occupant.on:
            gpus[key] = occupant.on[name].gpus
    asked = sum(gpus.values())
    waiting = [key for key in gpus if gpus[key] and (is_changed or key in ray_clusters.starting)]
    if asked <= pool.at_most or not waiting:
        return None
    owners = [ray_clusters.after[key] for key in waiting]
    return Shortage(
        pool=name,
        has=pool.at_most,
        unit=pool.unit,
        gpu_unit=pool.gpu_unit,
        asked=asked,
        beside=sum(count for key, count in gpus.items() if key not in ray_clusters.planned),
        who=[f"{owner.kind} {owner.name}" for owner in owners],
        ray_clusters=waiting,
    )
