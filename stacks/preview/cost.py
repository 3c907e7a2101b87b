"""GPU-hours and money of a day, before and after. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from berth.components.plan.fleet import PlannedFleet, PlannedPool

HOURS = 24
"""Of a day: what is there is paid for around the clock."""


@dataclass(frozen=True)
class GpuHours:
    """GPU-hours a day of one GPU product: from and to, where GKE's autoscaler chooses.

    Attributes:
        product: what the GPUs are called.
        now: as it is.
        after: as it is to be.
    """

    product: str
    now: tuple[int, int]
    after: tuple[int, int]


@dataclass(frozen=True)
class Money:
    """Money a day of the pools whose settings give an hourly rate.

    Attributes:
        currency: of the environment's settings.
        now: as it is, by the rates of the settings as they are now.
        after: as it is to be, by the same.
        without_rate: pools that are not in it, since nobody said what they cost.
    """

    currency: str
    now: tuple[Decimal, Decimal]
    after: tuple[Decimal, Decimal]
    without_rate: list[str]


def gpu_hours(fleet: PlannedFleet) -> list[GpuHours]:
    """GPU-hours a day by product."""
    products = sorted({pool.product for pool in (*fleet.before.values(), *fleet.after.values()) if pool.gpus_per_node})
    return [GpuHours(each, _hours(fleet.before, each), _hours(fleet.after, each)) for each in products]


def _hours(pools: Mapping[str, PlannedPool], product: str) -> tuple[int, int]:
    its = [pool.gpus for pool in pools.values() if pool.gpus_per_node and pool.product == product]
    return sum(least for least, _ in its) * HOURS, sum(most for _, most in its) * HOURS


def money(fleet: PlannedFleet, rates: Mapping[str, Decimal], currency: str | None) -> Money | None:
    """Money a day; None where no pool has a rate.

    Args:
        fleet: the pools.
        rates: what a node of a pool costs an hour, by the pool's name.
        currency: of the rates.
    """
    names = sorted({*fleet.before, *fleet.after})
    if not any(name in rates for name in names):
        return None
    return Money(
        currency=currency or "",
        now=_money(fleet.before, rates),
        after=_money(fleet.after, rates),
        without_rate=[name for name in names if name not in rates],
    )


def _money(pools: Mapping[str, PlannedPool], rates: Mapping[str, Decimal]) -> tuple[Decimal, Decimal]:
    its = [(pool.nodes, rates[name]) for name, pool in pools.items() if name in rates]
    least, most = (sum((nodes[side] * rate for nodes, rate in its), Decimal(0)) * HOURS for side in (0, 1))
    return least, most
