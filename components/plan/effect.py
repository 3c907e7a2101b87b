"""Effects of a planned change on what runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from berth.components.core.words import counted
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.plan.fleet import PlannedFleet, PlannedPool, Span
from berth.components.plan.occupants import Occupant, Usage


class Level(IntEnum):
    """Severity of an effect."""

    HARMLESS = 0
    DISTURBS = 1
    DESTROYS = 2

    @property
    def word(self) -> str:
        """The level in lower case."""
        return self.name.lower()


@dataclass(frozen=True)
class GpusAway:
    """GPUs that go away; `back`: they come back without an edit, if there is capacity."""

    pool: str
    product: str
    gpus: Span[int]
    back: bool


@dataclass(frozen=True)
class Sitting:
    """Part of a RayCluster that an effect reaches: its pods, and their GPUs or shares of GPUs.

    `stack` is None for a RayCluster that no stack of berth registers.
    """

    kind: str
    name: str
    namespace: str
    ray_cluster: str
    stack: str | None
    pods: int
    gpus: int
    shares: bool
    gpus_in_words: str
    """The GPUs by what they are: `16 × B200`, `1 share of 1/4 L4`; empty for none."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the RayCluster."""
        return self.namespace, self.ray_cluster

    def __str__(self) -> str:
        gpus = f", {self.gpus_in_words}" if self.gpus_in_words else ""
        return f"{self.kind} {self.name} ({counted(self.pods, 'pod')}{gpus})"


@dataclass(frozen=True)
class Effect:
    """Effect of a change: a sentence without its full stop, and the RayClusters and GPUs."""

    level: Level
    text: str
    sitting: Sequence[Sitting] = ()
    gpus_away: Sequence[GpusAway] = ()
    all_go: bool = True
    """Whether an effect that destroys takes pods of all these RayClusters. Else nobody knows of
    which, or their work ends and their pods stay."""


def sitting_on(fleet: PlannedFleet, pools: Sequence[str]) -> list[Sitting]:
    """Return the RayClusters with pods on some pools."""
    sitting = []
    for occupant in fleet.on(pools):
        on = {pool: usage for pool, usage in occupant.on.items() if pool in pools and usage.pods}
        sitting.append(_sitting(fleet, occupant, on))
    return sitting


def sitting_whole(fleet: PlannedFleet, occupant: Occupant) -> Sitting:
    """Return a RayCluster with all of its pods."""
    return _sitting(fleet, occupant, occupant.on)


def _sitting(fleet: PlannedFleet, occupant: Occupant, on: Mapping[str, Usage]) -> Sitting:
    by_unit: Counter[GpuUnit] = Counter()
    for pool, usage in on.items():
        by_unit[_gpu_unit(fleet, pool, usage)] += usage.gpus
    return Sitting(
        kind=occupant.kind,
        name=occupant.name,
        namespace=occupant.namespace,
        ray_cluster=occupant.ray_cluster,
        stack=occupant.stack or None,
        pods=sum(usage.pods for usage in on.values()),
        gpus=sum(usage.gpus for usage in on.values()),
        shares=any(_has_shares(fleet, pool, usage) for pool, usage in on.items()),
        gpus_in_words=" + ".join(unit.brief(gpus) for unit, gpus in by_unit.items() if gpus),
    )


def _gpu_unit(fleet: PlannedFleet, pool: str, usage: Usage) -> GpuUnit:
    """Return what one GPU of a pool is to the pods that are there."""
    before = fleet.before.get(pool)
    shares = _has_shares(fleet, pool, usage)
    unit = fleet.gpu_units.get(pool)
    # Claims of MIG instances do not count as shares.
    if unit and (unit.kind == "mig" or (unit.kind == "share") == shares):
        return unit
    kind: Literal["gpu", "share"] = "share" if shares else "gpu"
    return GpuUnit(before.product if before else "", kind, per_gpu=0 if shares else 1)


def _has_shares(fleet: PlannedFleet, pool: str, usage: Usage) -> bool:
    """Return whether the GPUs that pods use on a pool are shares of GPUs."""
    if not usage.gpus:
        return False
    return usage.shares or (pool in fleet.before and fleet.before[pool].shared)


def where_somebody_works(fleet: PlannedFleet, sitting: Sequence[Sitting]) -> Level:
    """Return the level of an end of the work on some nodes, which may be known to be idle."""
    return Level.DESTROYS if sitting or not fleet.asked else Level.DISTURBS


def gpus_away(pool: PlannedPool, nodes: tuple[int, int], *, back: bool) -> list[GpusAway]:
    """Return the GPUs of some of a pool's nodes, if they have any.

    Args:
        pool: the pool.
        nodes: least and largest number of nodes that go away.
        back: whether they come back without an edit.
    """
    least, most = nodes
    if not most or not pool.gpus_per_node:
        return []
    count = Span(least * pool.gpus_per_node, most * pool.gpus_per_node)
    return [GpusAway(pool.name, pool.product, count, back)]
