"""`berth gpus`: GPUs that are free, where, at what share and price, and how to request them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.reach.environment import brought_up
from berth.cli.reach.fleet import fleet_on
from berth.cli.shell.console import Table, out, print_json
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import plural
from berth.components.ray.nodes import Node
from berth.components.sharing import Pool, offered


@dataclass(frozen=True)
class GpuOffer:
    """GPUs of one pool, counted as pods request them: whole ones, shares or MIG instances."""

    pool: Pool
    nodes: Sequence[Node]
    """Nodes of the pool."""

    @property
    def product(self) -> str:
        """Name of the GPU."""
        return self.pool.settings.machine.gpu.product

    @property
    def memory_gib(self) -> Decimal:
        """GPU memory behind one."""
        return self.pool.profile.memory_gib(self.pool.settings.machine)

    @property
    def count(self) -> int:
        """Number on the ready nodes."""
        return sum(node.gpus for node in self.nodes if node.ready)

    @property
    def free_by_node(self) -> dict[str, int]:
        """Numbers that no pod holds, by ready node."""
        return {
            node.name: max(node.gpus - sum(holder.gpus for holder in node.holders), 0)
            for node in self.nodes
            if node.ready
        }

    @property
    def most(self) -> int:
        """Largest number that one worker can have."""
        return 1 if self.pool.profile.facts.one_each else self.pool.per_node

    @property
    def free_on_one_node(self) -> int:
        """Largest number that one worker can have at once, without another node."""
        return min(max(self.free_by_node.values(), default=0), self.most)

    @property
    def later(self) -> int:
        """Number on nodes that the pool can still get."""
        return max(self.pool.settings.nodes_at_most - len(self.nodes), 0) * self.pool.per_node

    @property
    def rate(self) -> Decimal | None:
        """Price of one for an hour, in the environment's currency; None if nobody wrote it."""
        rate = self.pool.settings.hourly_rate
        return None if rate is None else rate / self.pool.per_node


def offers_of(pools: Iterable[Pool], nodes: Sequence[Node]) -> list[GpuOffer]:
    """Return the GPUs of the pools that have any."""
    return [GpuOffer(pool, [node for node in nodes if node.pool == pool.name]) for pool in pools if pool.offer]


def gpus(stack: str, product: str | None, *, as_json: bool) -> int:
    """Print the GPUs of an environment's pools; return the exit code."""
    up = brought_up(stack)
    pools = offered(up.contract.pools, up.contract.sharing).values()
    offers = offers_of(pools, fleet_on(up, stack).nodes)
    if product is not None:
        offers = _of_product(offers, product, up.stack)
    if as_json:
        print_json([_as_json(offer, up.contract.currency) for offer in offers])
    elif offers:
        out.print(table(offers, up.contract.currency, up.stack))
    else:
        out.print(f"no pool of {up.stack} has GPUs", markup=False)
    return 0


def _of_product(offers: list[GpuOffer], product: str, stack: str) -> list[GpuOffer]:
    """Return the offers of a GPU."""
    found = [offer for offer in offers if _bare(product) in _bare(offer.product)]
    if not found or not _bare(product):
        known = sorted({offer.product for offer in offers})
        raise BadInputError(
            f"no pool of {stack} has GPU {product!r}{did_you_mean(product, known)}",
            f"its pools have {', '.join(known) or 'no GPUs'}; berth gpus -s {stack} lists them",
        )
    return found


def _bare(name: str) -> str:
    """Return a name without case, marks and maker: `NVIDIA B200` is `b200`."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia")


def table(offers: list[GpuOffer], currency: str | None, stack: str) -> Group:
    """Return the offers for people."""
    priced = [f"{currency or 'price'} an hour"] if any(offer.rate is not None for offer in offers) else []
    grid = Table("pool", "GPU", "a worker has", "free now", "on one node", "later", "capacity", *priced)
    for offer in offers:
        grid.add_row(
            offer.pool.name,
            offer.product,
            _worker(offer),
            _counted(f"{sum(offer.free_by_node.values())}/{offer.count}", offer.pool),
            Text(str(offer.free_on_one_node), style="green" if offer.free_on_one_node else "yellow"),
            f"+{offer.later}" if offer.later else "–",
            offer.pool.settings.capacity.kind,
            *(["–" if offer.rate is None else f"{offer.rate:.2f}"] if priced else []),
        )
    best = next((offer for offer in offers if offer.free_on_one_node), offers[0])
    how = (
        f"\nIn the settings of a berth: worker: {{pool: {best.pool.name}, gpus: 1}}\n"
        f"A new berth: berth engineer add NAME -s {stack} --pool {best.pool.name} --gpus 1"
    )
    return Group(grid, Text(how))


def _worker(offer: GpuOffer) -> str:
    """Return what one worker can have: `1 share, 45 GiB, memory not isolated`."""
    count = f"1 to {offer.most} {plural(offer.pool.unit)}" if offer.most > 1 else offer.pool.counted(1)
    memory = f"{offer.memory_gib.quantize(Decimal(1))} GiB{' each' if offer.most > 1 else ''}"
    return ", ".join(filter(None, [count, memory, offer.pool.sharing]))


def _counted(count: str, pool: Pool) -> str:
    return f"{count} {plural(pool.unit)}" if pool.sharing else count


def _as_json(offer: GpuOffer, currency: str | None) -> dict[str, Any]:
    return {
        "pool": offer.pool.name,
        "machineType": offer.pool.settings.machine_type,
        "gpu": offer.product,
        "unit": offer.pool.unit,
        "memoryGiB": float(round(offer.memory_gib, 1)),
        "sharing": offer.pool.sharing,
        "capacity": offer.pool.settings.capacity.kind,
        "nodes": len(offer.free_by_node),
        "count": offer.count,
        "free": sum(offer.free_by_node.values()),
        "freeByNode": offer.free_by_node,
        "freeOnOneNode": offer.free_on_one_node,
        "mostPerWorker": offer.most,
        "later": offer.later,
        "hourlyRate": None if offer.rate is None else float(round(offer.rate, 4)),
        "currency": None if offer.rate is None else currency,
        "request": {"worker": {"pool": offer.pool.name, "gpus": 1}},
    }
