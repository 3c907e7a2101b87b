"""GPUs that an environment's pools offer: what is free now, on which nodes, at what rate. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from berth.components.hardware.facts import CapacityKind
from berth.components.ray.nodes import Node
from berth.components.sharing import Pool


@dataclass(frozen=True)
class GpuOffer:
    """GPUs of one pool, counted as pods request them: whole ones, shares or MIG instances."""

    pool: str
    machine_type: str
    product: str
    """Name of the GPU."""
    unit: str
    """Noun for what is counted: `GPU`, `share`."""
    memory_gib: Decimal
    """GPU memory behind one."""
    sharing: str
    """How GPUs are shared; "" for whole GPUs."""
    capacity: CapacityKind
    """Origin of the machines."""
    nodes: int
    """Number of ready nodes."""
    count: int
    """Number on the ready nodes."""
    free: int
    """Number that no pod holds."""
    free_by_node: dict[str, int]
    """Numbers that no pod holds, by node."""
    most: int
    """Largest number that one worker can have."""
    later: int
    """Number on nodes that the pool can still get."""
    rate: Decimal | None
    """Price of one for an hour, in the environment's currency; None if nobody wrote it."""

    @property
    def free_on_one_node(self) -> int:
        """Largest number that one worker can have at once, without another node."""
        return min(max(self.free_by_node.values(), default=0), self.most)


def gpu_offers(pools: Iterable[Pool], nodes: Iterable[Node]) -> list[GpuOffer]:
    """Return the GPUs of the pools that have any."""
    found = list(nodes)
    return [_offer(pool, [node for node in found if node.pool == pool.name]) for pool in pools if pool.offer]


def _offer(pool: Pool, nodes: list[Node]) -> GpuOffer:
    settings, rate = pool.settings, pool.settings.hourly_rate
    free = {node.name: max(node.gpus - _held(node), 0) for node in nodes if node.ready}
    return GpuOffer(
        pool=pool.name,
        machine_type=settings.machine_type,
        product=settings.machine.gpu.product,
        unit=pool.unit,
        memory_gib=pool.profile.memory_gib(settings.machine),
        sharing=pool.sharing,
        capacity=settings.capacity.kind,
        nodes=len(free),
        count=sum(node.gpus for node in nodes if node.ready),
        free=sum(free.values()),
        free_by_node=free,
        most=1 if pool.profile.facts.one_each else pool.per_node,
        later=max(settings.nodes_at_most - len(nodes), 0) * pool.per_node,
        rate=None if rate is None else rate / pool.per_node,
    )


def _held(node: Node) -> int:
    return sum(holder.gpus for holder in node.holders)
