"""`berth gpus`: GPUs that are free, where, at what share and price, and how to request them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.reach.environment import brought_up
from berth.cli.reach.fleet import fleet_on
from berth.cli.shell.console import Table, print_result
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import counted, plural
from berth.components.ray.live import Node
from berth.components.sharing import Pool, offered_pools

Offer = dict[str, Any]
"""GPUs of one pool, as a program sees them."""


def gpus(stack: str, product: str | None, *, as_json: bool) -> int:
    """Print the GPUs of an environment's pools; return the exit code."""
    up = brought_up(stack)
    pools = offered_pools(up.contract.pools, up.contract.sharing).values()
    offers = offers_of(pools, fleet_on(up, stack).nodes, up.contract.currency)
    if product is not None:
        offers = _of_product(offers, product, up.stack)
    shown = (
        table(offers, up.contract.currency, up.stack)
        if offers
        else f"no pool of {up.stack} has GPUs"
    )
    return print_result(offers, shown, as_json=as_json)


def offers_of(pools: Iterable[Pool], nodes: Sequence[Node], currency: str | None) -> list[Offer]:
    """Return the GPUs of the pools that have any."""
    return [
        _offer(pool, [node for node in nodes if node.pool == pool.name], currency)
        for pool in pools
        if pool.offer
    ]


def _offer(pool: Pool, nodes: Sequence[Node], currency: str | None) -> Offer:
    """Return the GPUs of a pool, counted as pods request them: whole, shares, MIG instances."""
    settings, ready = pool.settings, [node for node in nodes if node.ready]
    free = {
        node.name: max(node.gpus - sum(holder.gpus for holder in node.holders), 0) for node in ready
    }
    most = 1 if pool.profile.facts.one_each else pool.per_node
    rate = settings.hourly_rate
    return {
        "pool": pool.name,
        "machineType": settings.machine_type,
        "gpu": settings.machine.gpu.product,
        "unit": pool.unit,
        "memoryGiB": float(round(pool.profile.memory_gib(settings.machine), 1)),
        "sharing": pool.sharing,
        "capacity": settings.capacity.kind,
        "nodes": len(ready),
        "count": sum(node.gpus for node in ready),
        "free": sum(free.values()),
        "freeByNode": free,
        "freeOnOneNode": min(max(free.values(), default=0), most),
        "mostPerWorker": most,
        "later": max(settings.nodes_at_most - len(nodes), 0) * pool.per_node,
        "hourlyRate": None if rate is None else float(round(rate / pool.per_node, 4)),
        "currency": None if rate is None else currency,
        "request": {"worker": {"pool": pool.name, "gpus": 1}},
    }


def _of_product(offers: list[Offer], product: str, stack: str) -> list[Offer]:
    found = [offer for offer in offers if _bare(product) in _bare(offer["gpu"])]
    if not found or not _bare(product):
        known = sorted({offer["gpu"] for offer in offers})
        raise BadInputError(
            f"no pool of {stack} has GPU {product!r}{did_you_mean(product, known)}",
            f"its pools have {', '.join(known) or 'no GPUs'}; berth gpus -s {stack} lists them",
        )
    return found


def _bare(name: str) -> str:
    """Return a name without case, marks and maker: `NVIDIA B200` is `b200`."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia")


def table(offers: list[Offer], currency: str | None, stack: str) -> Group:
    """Return the offers for people."""
    priced = (
        [f"{currency or 'price'} an hour"]
        if any(offer["hourlyRate"] is not None for offer in offers)
        else []
    )
    grid = Table(
        "pool", "GPU", "a worker has", "free now", "on one node", "later", "capacity", *priced
    )
    for offer in offers:
        grid.add_row(
            offer["pool"],
            offer["gpu"],
            _worker(offer),
            f"{offer['free']}/{offer['count']}"
            + (f" {plural(offer['unit'])}" if offer["sharing"] else ""),
            Text(
                str(offer["freeOnOneNode"]), style="green" if offer["freeOnOneNode"] else "yellow"
            ),
            f"+{offer['later']}" if offer["later"] else "–",
            offer["capacity"],
            *(
                ["–" if offer["hourlyRate"] is None else f"{offer['hourlyRate']:.2f}"]
                if priced
                else []
            ),
        )
    best = next((offer for offer in offers if offer["freeOnOneNode"]), offers[0])["pool"]
    how = (
        f"\nIn the settings of a berth: worker: {{pool: {best}, gpus: 1}}\n"
        f"A new berth: berth engineer add NAME -s {stack} --pool {best} --gpus 1"
    )
    return Group(grid, Text(how))


def _worker(offer: Offer) -> str:
    """Return what one worker can have: `1 share, 45 GiB, memory not isolated`."""
    most, memory = offer["mostPerWorker"], f"{offer['memoryGiB']:.0f} GiB"
    if most > 1:
        return ", ".join(
            filter(
                None, [f"1 to {most} {plural(offer['unit'])}", f"{memory} each", offer["sharing"]]
            )
        )
    return ", ".join(filter(None, [counted(1, offer["unit"]), memory, offer["sharing"]]))
