"""`berth gpus`: GPUs that are free, where, at what share and price, and how to request them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.reach.environment import brought_up
from berth.cli.reach.fleet import fleet_on
from berth.cli.shell.console import Table, out, print_json
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import counted, plural
from berth.components.ray.offers import GpuOffer, gpu_offers
from berth.components.sharing import offered


def gpus(stack: str, product: str | None, *, as_json: bool) -> int:
    """Print the GPUs of an environment's pools; return the exit code."""
    up = brought_up(stack)
    pools = offered(up.contract.pools, up.contract.sharing).values()
    offers = gpu_offers(pools, fleet_on(up, stack).nodes)
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
            offer.pool,
            offer.product,
            _worker(offer),
            _counted(f"{offer.free}/{offer.count}", offer),
            Text(str(offer.free_on_one_node), style="green" if offer.free_on_one_node else "yellow"),
            f"+{offer.later}" if offer.later else "–",
            offer.capacity,
            *(["–" if offer.rate is None else f"{offer.rate:.2f}"] if priced else []),
        )
    best = next((offer for offer in offers if offer.free_on_one_node), offers[0])
    how = (
        f"In the settings of a berth: worker: {{pool: {best.pool}, gpus: 1}}\n"
        f"A new berth: berth engineer add NAME -s {stack} --pool {best.pool} --gpus 1"
    )
    return Group(grid, Text(how))


def _worker(offer: GpuOffer) -> str:
    """Return what one worker can have: `1 share, 45 GiB, memory not isolated`."""
    count = f"1 to {offer.most} {plural(offer.unit)}" if offer.most > 1 else counted(1, offer.unit)
    memory = f"{offer.memory_gib.quantize(Decimal(1))} GiB{' each' if offer.most > 1 else ''}"
    return ", ".join(filter(None, [count, memory, offer.sharing]))


def _counted(count: str, offer: GpuOffer) -> str:
    return f"{count} {plural(offer.unit)}" if offer.sharing else count


def _as_json(offer: GpuOffer, currency: str | None) -> dict[str, Any]:
    return {
        "pool": offer.pool,
        "machineType": offer.machine_type,
        "gpu": offer.product,
        "unit": offer.unit,
        "memoryGiB": float(round(offer.memory_gib, 1)),
        "sharing": offer.sharing,
        "capacity": offer.capacity,
        "nodes": offer.nodes,
        "count": offer.count,
        "free": offer.free,
        "freeByNode": offer.free_by_node,
        "freeOnOneNode": offer.free_on_one_node,
        "mostPerWorker": offer.most,
        "later": offer.later,
        "hourlyRate": None if offer.rate is None else float(round(offer.rate, 4)),
        "currency": None if offer.rate is None else currency,
        "request": {"worker": {"pool": offer.pool, "gpus": 1}},
    }
