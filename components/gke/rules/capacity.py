"""Rules of the capacity of pools that berth creates: how Google sells machines, what kinds exclude.

Sources: "Consume reserved zonal resources"
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations), "About GPU,
TPU, and H4D consumption with flex-start"
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws), and the preconditions of
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
"""

import re
from collections.abc import Iterator

from berth.components.core.bounds import Bounds
from berth.components.core.rules import Breach, Rules
from berth.components.core.words import names_in_words
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.rules.pool import EnvironmentPool
from berth.components.programs.lifetimes import parse_duration

CREATED_CAPACITY = Rules[EnvironmentPool](PoolSettings)
"""Rules of the capacity of a pool that berth creates."""

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_FLEX_START = parse_duration("7d")


@CREATED_CAPACITY.problem("capacity", rests_on=["capacity.kind"])
def capacity_that_google_does_not_sell(pool: EnvironmentPool) -> str | None:
    """Google sells a machine type in certain ways.

    A machine on demand may come from a reservation that any machine may use, of which
    `machines_that_only_a_reservation_has` warns.
    """
    kind = pool.settings.capacity.kind
    sold = pool.settings.machine.series.sold
    if kind in sold or (kind == "on-demand" and "reservation" in sold):
        return None
    return (
        f"{pool.settings.machine_type} cannot be had by {kind}; Google sells it by"
        f" {names_in_words(sold, 'or')}"
    )


@CREATED_CAPACITY.warning("machineType", "capacity")
def machines_that_only_a_reservation_has(pool: EnvironmentPool) -> Iterator[Breach]:
    """Machines that Google does not sell on demand may come from a reservation nevertheless."""
    sold = pool.settings.machine.series.sold
    if pool.settings.capacity.kind != "on-demand" or "on-demand" in sold:
        return
    if "reservation" not in sold:
        return
    # Whoever wrote no `capacity` wrote the machine type that needs one.
    is_written = "capacity" in pool.settings.model_fields_set
    yield Breach(
        f"Google does not sell {pool.settings.machine_type} on demand: without a reservation that"
        f" any machine may use, there will be no node; set `capacity` to"
        f" {names_in_words(sold, 'or')}",
        at=("capacity",) if is_written else None,
    )


@CREATED_CAPACITY.problem(
    "capacity.reservation",
    "capacity.block",
    "capacity.subBlock",
    "capacity.project",
    "capacity.maxRunDuration",
    rests_on=["capacity.kind"],
)
def key_of_another_kind(pool: EnvironmentPool) -> Iterator[Breach]:
    """Each kind of capacity has its own keys."""
    capacity = pool.settings.capacity
    for key, value, kind in (
        ("reservation", capacity.reservation, "reservation"),
        ("block", capacity.block, "reservation"),
        ("subBlock", capacity.sub_block, "reservation"),
        ("project", capacity.project, "reservation"),
        ("maxRunDuration", capacity.max_run_duration, "flex-start"),
    ):
        if value and capacity.kind != kind:
            yield Breach(
                f"belongs to `kind: {kind}`, but the pool's capacity is {capacity.kind}; take"
                f" {key} out, or set `kind: {kind}`",
                at=("capacity", key),
            )


@CREATED_CAPACITY.problem("capacity.reservation")
def unnamed_reservation(pool: EnvironmentPool) -> str | None:
    """Machines of a reservation are asked for by its name."""
    capacity = pool.settings.capacity
    if capacity.kind != "reservation" or capacity.reservation:
        return None
    of_the_block = ", and a block is one of a reservation" if capacity.block else ""
    return (
        f"is required: the reservation's name{of_the_block}; write capacity: {{kind: reservation,"
        " reservation: NAME}"
    )


@CREATED_CAPACITY.problem("capacity.block")
def sub_block_of_an_unnamed_block(pool: EnvironmentPool) -> str | None:
    """A sub-block is a part of a block, whose name its path has."""
    capacity = pool.settings.capacity
    if capacity.kind != "reservation" or capacity.block or not capacity.sub_block:
        return None
    return (
        f"is required: the block that {capacity.sub_block} is a part of; `gcloud compute"
        " reservations blocks list RESERVATION` lists them"
    )


@CREATED_CAPACITY.problem("capacity.reservation", "capacity.block", "capacity.subBlock")
def path_in_place_of_a_name(pool: EnvironmentPool) -> Iterator[Breach]:
    """GKE puts the path of a reservation together from names."""
    capacity = pool.settings.capacity
    if capacity.kind != "reservation":
        return
    for key, value in (
        ("reservation", capacity.reservation),
        ("block", capacity.block),
        ("subBlock", capacity.sub_block),
    ):
        if value and not _NAME.fullmatch(value):
            yield Breach(
                f"{value!r} is not a name; write the bare name, a block of the reservation as"
                " `block`, a sub-block as `subBlock`, and the project that owns it as `project`",
                at=("capacity", key),
            )


@CREATED_CAPACITY.problem("capacity.block", rests_on=["zones", "environment.zones"])
def block_across_zones(pool: EnvironmentPool) -> str | None:
    """A block of a reservation is in one zone."""
    capacity = pool.settings.capacity
    if capacity.kind != "reservation" or not capacity.block or not pool.in_several_zones:
        return None
    return (
        f"a block is in one zone, but the pool is in {pool.zones_in_words}; name its zone:"
        f" zones: [{pool.zones[0]}]"
    )


@CREATED_CAPACITY.problem("nodes", "nodes.min")
def flex_start_nodes_that_stay(pool: EnvironmentPool) -> Iterator[Breach]:
    """Flex-start nodes come when pods ask for them, and go."""
    nodes = pool.settings.nodes
    if pool.settings.capacity.kind != "flex-start":
        return
    if not isinstance(nodes, Bounds):
        yield Breach(
            "flex-start has no fixed number of nodes: they come when pods ask for them; write"
            f" nodes: {{min: 0, max: {max(nodes, 1)}}}",
            at=("nodes",),
        )
    elif nodes.min:
        yield Breach(
            "flex-start nodes come when pods ask for them, and none can be kept; write nodes:"
            f" {{min: 0, max: {nodes.max}}}",
            at=("nodes", "min"),
        )


@CREATED_CAPACITY.problem("capacity.kind")
def flex_start_without_gpus(pool: EnvironmentPool) -> str | None:
    """Machines to which GPUs can be attached are sold by flex-start with GPUs only."""
    machine = pool.settings.machine
    if pool.settings.capacity.kind != "flex-start" or machine.gpus or not machine.series.attaches:
        return None
    return "flex-start is for machines with GPUs; write `gpus`, or take another capacity"


@CREATED_CAPACITY.problem("capacity.maxRunDuration")
def flex_start_for_too_long(pool: EnvironmentPool) -> str | None:
    """Google takes flex-start machines away after seven days."""
    capacity = pool.settings.capacity
    if capacity.kind != "flex-start" or not capacity.max_run_duration:
        return None
    if parse_duration(capacity.max_run_duration) <= _LONGEST_FLEX_START:
        return None
    return (
        f"{capacity.max_run_duration} is longer than the 7d after which Google takes flex-start"
        " machines away; write 7d or less"
    )


@CREATED_CAPACITY.problem("autoRepair")
def repair_of_flex_start_nodes(pool: EnvironmentPool) -> str | None:
    """GKE cannot recreate a flex-start node."""
    if pool.settings.capacity.kind == "flex-start" and pool.settings.auto_repair:
        return (
            "GKE cannot repair flex-start nodes; take this line out, or write `autoRepair: false`"
        )
    return None


@CREATED_CAPACITY.problem("upgrade")
def upgrade_of_flex_start_nodes(pool: EnvironmentPool) -> str | None:
    """GKE does not replace flex-start nodes to upgrade them."""
    upgrade = pool.settings.upgrade
    if pool.settings.capacity.kind == "flex-start" and upgrade.model_fields_set:
        return (
            "flex-start nodes are not upgraded in place: new ones get the new version; take this"
            " line out"
        )
    return None
