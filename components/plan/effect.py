"""What an effect is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from berth.components.plan.fleet import Occupant, PlannedFleet, PlannedPool, Usage


class Level(IntEnum):
    """How bad an effect is."""

    HARMLESS = 0
    DISTURBS = 1
    DESTROYS = 2

    @property
    def word(self) -> str:
        """As it is written."""
        return self.name.lower()


@dataclass(frozen=True)
class GpusAway:
    """GPUs that go away.

    Attributes:
        pool: the node pool that they are in.
        product: what they are called.
        count: how many: from and to.
        back: they come back by themselves, if there is capacity.
    """

    pool: str
    product: str
    count: tuple[int, int]
    back: bool


@dataclass(frozen=True)
class Sitting:
    """A RayCluster that an effect reaches.

    Attributes:
        occupant: the RayCluster.
        pods: its pods that are reached.
        gpus: GPUs, or shares of them, that these hold.
        shares: they are shares.
    """

    occupant: Occupant
    pods: int
    gpus: int
    shares: bool

    def __str__(self) -> str:
        what = f"{self.occupant.kind} {self.occupant.name}"
        unit = "share of a GPU" if self.shares else "GPU"
        many = "shares of GPUs" if self.shares else "GPUs"
        gpus = f", {self.gpus} {unit if self.gpus == 1 else many}" if self.gpus else ""
        return f"{what} ({counted(self.pods, 'pod')}{gpus})"


@dataclass(frozen=True)
class Effect:
    """What a change does.

    Attributes:
        level: how bad it is.
        text: what happens, in a sentence without its full stop.
        sitting: the RayClusters that it reaches.
        gpus: GPUs that go away.
    """

    level: Level
    text: str
    sitting: Sequence[Sitting] = ()
    gpus: Sequence[GpusAway] = ()


def sitting_on(fleet: PlannedFleet, pools: Sequence[str]) -> list[Sitting]:
    """The RayClusters with pods on some pools."""
    found = []
    for occupant in fleet.on(pools):
        on = {pool: usage for pool, usage in occupant.on.items() if pool in pools and usage.pods}
        found.append(_sitting(fleet, occupant, on))
    return found


def sitting_whole(fleet: PlannedFleet, occupant: Occupant) -> Sitting:
    """A RayCluster with all that it has."""
    return _sitting(fleet, occupant, occupant.on)


def _sitting(fleet: PlannedFleet, occupant: Occupant, on: Mapping[str, Usage]) -> Sitting:
    shares = any(
        usage.shares or (pool in fleet.before and fleet.before[pool].shared) for pool, usage in on.items() if usage.gpus
    )
    return Sitting(occupant, sum(usage.pods for usage in on.values()), sum(usage.gpus for usage in on.values()), shares)


def where_somebody_works(fleet: PlannedFleet, sitting: Sequence[Sitting]) -> Level:
    """The level of what ends the work on some nodes: nobody's, where it is known that nobody is there."""
    return Level.DESTROYS if sitting or not fleet.asked else Level.DISTURBS


def gpus_away(pool: PlannedPool, nodes: tuple[int, int], *, back: bool) -> list[GpusAway]:
    """The GPUs of some of a pool's nodes; none where they have none."""
    if not nodes[1] or not pool.gpus_per_node:
        return []
    return [GpusAway(pool.name, pool.product, (nodes[0] * pool.gpus_per_node, nodes[1] * pool.gpus_per_node), back)]


def counted(count: int, thing: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
