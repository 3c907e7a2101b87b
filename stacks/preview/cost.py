"""GPU-hours and money a day, before and after a change. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from berth.components.plan.fleet import PlannedFleet, PlannedPool, Span

HOURS = 24
"""Hours in a day; running nodes are billed around the clock."""

HOURS_A_MONTH = 730
"""Hours in a month, a twelfth of 365 days
(https://docs.cloud.google.com/compute/vm-instance-pricing)."""


@dataclass(frozen=True)
class GpuHours:
    """GPU-hours a day of one GPU product, before and after the change."""

    product: str
    now: Span[int]
    after: Span[int]


@dataclass(frozen=True)
class Money:
    """Money a day for nodes, by the rates of the present settings, for the pools that have one."""

    currency: str
    now: Span[Decimal]
    after: Span[Decimal]
    pools_without_rate: list[str]
    """Pools without a rate, before or after the change."""
    now_at_least: bool
    """Whether nodes of before have no rate, so that `now` lacks their price."""
    at_least: bool
    """Whether nodes of after have no rate, so that `after` lacks their price."""
    gpus: int
    """Most GPUs after the change."""
    gpus_without_rate: int
    """Most GPUs after the change whose nodes have no rate."""
    month: Span[Decimal] | None
    """Money a month after the change; None where nodes have no rate."""


def gpu_hours(fleet: PlannedFleet) -> list[GpuHours]:
    """Return GPU-hours a day by product."""
    pools = (*fleet.before.values(), *fleet.after.values())
    products = {pool.product for pool in pools if pool.gpus_per_node}
    return [
        GpuHours(product, _hours(fleet.before, product), _hours(fleet.after, product))
        for product in sorted(products)
    ]


def _hours(pools: Mapping[str, PlannedPool], product: str) -> Span[int]:
    gpus = [pool.gpus for pool in pools.values() if pool.gpus_per_node and pool.product == product]
    return Span(sum(least for least, _ in gpus) * HOURS, sum(most for _, most in gpus) * HOURS)


def money(fleet: PlannedFleet, rates: Mapping[str, Decimal], currency: str | None) -> Money | None:
    """Return money a day by the pools' rates; None where no pool has a rate."""
    names = sorted({*fleet.before, *fleet.after})
    if not any(name in rates for name in names):
        return None
    unpriced = _without_rate(fleet.after, rates)
    return Money(
        currency=currency or "",
        now=_money(fleet.before, rates, HOURS),
        after=_money(fleet.after, rates, HOURS),
        pools_without_rate=[name for name in names if name not in rates],
        now_at_least=bool(_without_rate(fleet.before, rates)),
        at_least=bool(unpriced),
        gpus=sum(pool.gpus.max for pool in fleet.after.values()),
        gpus_without_rate=sum(pool.gpus.max for pool in unpriced),
        month=None if unpriced else _money(fleet.after, rates, HOURS_A_MONTH),
    )


def _without_rate(
    pools: Mapping[str, PlannedPool], rates: Mapping[str, Decimal]
) -> list[PlannedPool]:
    """Return the pools that can have nodes, and have no rate."""
    return [pool for name, pool in pools.items() if name not in rates and pool.nodes.max]


def _money(
    pools: Mapping[str, PlannedPool], rates: Mapping[str, Decimal], hours: int
) -> Span[Decimal]:
    least = Decimal(0)
    most = Decimal(0)
    for name, pool in pools.items():
        if name in rates:
            least += pool.nodes.min * rates[name] * hours
            most += pool.nodes.max * rates[name] * hours
    return Span(least, most)
