"""`berth gpus`: GPUs that are free, where, at what share and price, and how to request them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.pulumi.preview.document import plain_data
from berth.cli.reach.environment import brought_up
from berth.cli.reach.fleet import fleet_on
from berth.cli.shell.console import print_result
from berth.cli.shell.table import Table
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.words import plural
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.ray.live import Node
from berth.components.sharing import Pool, offered_pools
from berth.stacks.settings.contract import EnvironmentContract


@dataclass(frozen=True)
class GpuOffer:
    """GPUs of a pool, counted as pods request them: whole GPUs, shares, or MIG instances.

    Attributes:
        pool: name of the pool.
        machine_type: machine type of its nodes.
        gpu: name of the GPU.
        unit: noun for one device: `GPU`, `share`.
        gpu_unit: what one device is, in words and for programs.
        memory_gib: memory of one device; of time slices an even part, which nothing enforces.
        sharing: how GPUs are shared, in words; empty for whole GPUs.
        capacity: kind of the pool's capacity, such as `spot`.
        nodes: number of ready nodes.
        count: number of devices on ready nodes.
        free_by_node: number of free devices by the node's name.
        most_per_worker: number of devices that a worker can have.
        later: number of devices on nodes that the pool can still get.
        hourly_rate: price of a device for an hour; None where the settings have none.
        currency: currency of the price; None without a price or a currency.
        is_default: whether workers are there that name no pool.
        fabric: whether its workers can have RDMA NICs, which other pools lack.
    """

    pool: str
    machine_type: str
    gpu: str
    unit: str
    gpu_unit: GpuUnit
    memory_gib: float
    sharing: str
    capacity: str
    nodes: int
    count: int
    free_by_node: dict[str, int]
    most_per_worker: int
    later: int
    hourly_rate: float | None
    currency: str | None
    is_default: bool
    fabric: bool

    @property
    def free(self) -> int:
        """Number of free devices on all nodes."""
        return sum(self.free_by_node.values())

    @property
    def free_on_one_node(self) -> int:
        """Number of devices that one worker can have now."""
        return min(max(self.free_by_node.values(), default=0), self.most_per_worker)

    @property
    def for_worker(self) -> str:
        """Size of a worker in words: `1 share (1/4 of a B200, 45 GiB)`, `1 to 8 × B200`."""
        least = "1 to " if self.most_per_worker > 1 else ""
        return f"{least}{self.gpu_unit.amount(self.most_per_worker)}"

    def as_json(self) -> dict[str, Any]:
        """Return the offer for programs."""
        return {
            "pool": self.pool,
            "machineType": self.machine_type,
            "gpu": self.gpu,
            "unit": self.unit,
            "gpuUnit": plain_data(self.gpu_unit),
            "memoryGiB": self.memory_gib,
            "sharing": self.sharing,
            "capacity": self.capacity,
            "nodes": self.nodes,
            "count": self.count,
            "free": self.free,
            "freeByNode": self.free_by_node,
            "freeOnOneNode": self.free_on_one_node,
            "mostPerWorker": self.most_per_worker,
            "later": self.later,
            "hourlyRate": self.hourly_rate,
            "currency": self.currency,
            "isDefault": self.is_default,
            "fabric": self.fabric,
            "request": {"worker": {"pool": self.pool, "gpus": 1}},
        }


def print_free_gpus(stack: str, product: str | None, *, as_json: bool) -> int:
    """Print the GPUs of an environment's pools; return the exit code.

    Args:
        stack: stack of the environment, or an engineer's own.
        product: name of a GPU, or a part of one; None for all.
        as_json: whether they are printed as JSON.

    Raises:
        BadInputError: no pool has the GPU.
        NotUpError: the environment is not up.
    """
    environment = brought_up(stack)
    contract = environment.contract
    offers = gpu_offers(contract, fleet_on(environment, stack).nodes)
    if product is not None:
        offers = _offers_of_product(offers, product, environment.stack)
    shown: Group | str = f"no pool of {environment.stack} has GPUs"
    if offers:
        shown = offers_table(offers, contract.currency, environment.stack)
    return print_result([offer.as_json() for offer in offers], shown, as_json=as_json)


def gpu_offers(contract: EnvironmentContract, nodes: Sequence[Node]) -> list[GpuOffer]:
    """Return the GPUs of an environment's pools that have any, on its nodes."""
    offers = []
    for pool in offered_pools(contract.pools, contract.sharing).values():
        if pool.offer:
            of_pool = [node for node in nodes if node.pool == pool.name]
            offers.append(_offer(pool, of_pool, contract))
    return offers


def _offer(pool: Pool, nodes: Sequence[Node], contract: EnvironmentContract) -> GpuOffer:
    settings = pool.settings
    ready = [node for node in nodes if node.ready]
    rate = settings.hourly_rate
    return GpuOffer(
        pool=pool.name,
        machine_type=settings.machine_type,
        gpu=settings.machine.gpu.product,
        unit=pool.unit,
        gpu_unit=pool.gpu_unit,
        memory_gib=float(round(pool.profile.memory_gib(settings.machine), 1)),
        sharing=pool.sharing,
        capacity=settings.capacity.kind,
        nodes=len(ready),
        count=sum(node.gpus for node in ready),
        free_by_node={node.name: _free_on(node) for node in ready},
        most_per_worker=1 if pool.profile.facts.one_each else pool.per_node,
        later=max(settings.nodes_at_most - len(nodes), 0) * pool.per_node,
        hourly_rate=None if rate is None else float(round(rate / pool.per_node, 4)),
        currency=None if rate is None else contract.currency,
        is_default=pool.name == contract.defaults.worker.pool,
        fabric=bool(settings.nics),
    )


def _free_on(node: Node) -> int:
    taken = sum(holder.gpus for holder in node.holders)
    return max(node.gpus - taken, 0)


def _offers_of_product(offers: list[GpuOffer], product: str, stack: str) -> list[GpuOffer]:
    name = _bare_name(product)
    matching = [offer for offer in offers if name in _bare_name(offer.gpu)]
    if not matching or not name:
        gpus = sorted({offer.gpu for offer in offers})
        raise BadInputError(
            f"no pool of {stack} has GPU {product!r}{did_you_mean(product, gpus)}",
            f"its pools have {', '.join(gpus) or 'no GPUs'}; berth gpus -s {stack} lists them",
        )
    return matching


def _bare_name(name: str) -> str:
    """Return a name without case, marks and maker: `NVIDIA B200` is `b200`."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia")


def offers_table(offers: Sequence[GpuOffer], currency: str | None, stack: str) -> Group:
    """Return the offers for people."""
    heads = ["pool", "GPU", "a worker has", "free now", "on one node", "later", "capacity"]
    has_prices = any(offer.hourly_rate is not None for offer in offers)
    if has_prices:
        heads.append(f"{currency or 'price'} an hour")
    table = Table(*heads, hide_first=("later", "on one node", "capacity"))
    for offer in offers:
        cells = _cells(offer)
        if has_prices:
            cells.append("–" if offer.hourly_rate is None else f"{offer.hourly_rate:.2f}")
        table.add_row(*cells)
    best = min(offers, key=_rank).pool
    how = (
        f"\nIn the settings of a berth: worker: {{pool: {best}, gpus: 1}}\n"
        f"A new berth: berth engineer add NAME -s {stack} --pool {best} --gpus 1"
    )
    return Group(table, Text(how))


def _rank(offer: GpuOffer) -> tuple[bool, bool, bool]:
    """Return the place of an offer among others, the least first.

    GPUs that are free come before others, then the pool that the environment's admins chose for
    workers, then pools without a fabric, which training on several nodes needs.
    """
    return not offer.free_on_one_node, not offer.is_default, offer.fabric


def _cells(offer: GpuOffer) -> list[Text | str]:
    free = f"{offer.free}/{offer.count}"
    if offer.sharing:
        free += f" {plural(offer.unit)}"
    style = "green" if offer.free_on_one_node else "yellow"
    return [
        offer.pool,
        offer.gpu,
        offer.for_worker,
        free,
        Text(str(offer.free_on_one_node), style=style),
        f"+{offer.later}" if offer.later else "–",
        offer.capacity,
    ]
