"""Supply of machines for a pool: quotas, reservations, and the stock of a zone.

Pure functions of records and conditions. Quotas and reservations are looked at before anything is
made, and GKE says at once what is short, which Google's provider may not pass on (retries.py);
whether a zone has machines shows only when they are asked for. The real GKE asks for them again for
about 35 minutes before its operation fails (akka/akka-core#32992, NVIDIA/aicr#2764,
GoogleCloudPlatform/cluster-toolkit#6278), and the lab not at all. Nodes from a specific reservation
take no quota: it was taken when the machines were reserved ("Reservations of Compute Engine zonal
resources").

Texts are those that public reports quote:
kaiwaehner/hivemq-mqtt-tensorflow-kafka-realtime-iot-machine-learning-training-inference#48
(quota), GoogleCloudPlatform/gsutil#1000 and cluster-toolkit#5043 (reservations),
hashicorp/terraform-provider-google#10121 (stock). refusals.yaml has more of them, by status.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from berth.components.hardware import quota_names
from berth.lab.plugins.gcp.conditions import Conditions, Reservation
from berth.lab.plugins.gcp.errors import GoogleApiError
from berth.lab.plugins.gcp.locations import region_of
from berth.lab.plugins.gcp.nodes import node_name, sizes_of
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.store import StoredRecord

_RESERVATION = re.compile(
    r"projects/(?P<project>[^/]+)/reservations/(?P<name>[^/]+)"
    r"(/reservationBlocks/(?P<block>[^/]+)(/reservationSubBlocks/(?P<sub_block>[^/]+))?)?"
)

# How GKE's autoscaler words it on the pods that wait (k8s.io/gke-autoscaling, events of failed
# scale-ups).
QUOTA = "GCE quota exceeded"
STOCK = "GCE out of resources"
_REASONS = {
    "no-reservation": "Reservation not found or incorrectly shared",
    "unlike-reservation": "Reservation incompatible with node group",
    "reservation-full": "Reservation capacity exceeded",
}


@dataclass(frozen=True)
class Room:
    """Number of machines that can still be had."""

    left: int | None
    """Their number; None where there is no end of them."""
    short_of: str = ""
    """Resource that has run out, in the autoscaler's words, when `left` is used up."""


def capacity_of(pool: PoolInputs) -> str:
    """`reservation`, `flex-start`, `spot` or `on-demand`."""
    if pool.reservation == "SPECIFIC_RESERVATION":
        return "reservation"
    if pool.flex_start:
        return "flex-start"
    return "spot" if pool.spot else "on-demand"


def metrics(pool: PoolInputs) -> dict[str, int]:
    """Return the regional quotas that one node of a pool takes, by metric."""
    quotas = quota_names.quotas_taken(pool.machine, capacity_of(pool))
    return {str(quota): amount for quota, amount in quotas.items() if not quota.everywhere}


def check_quota(
    conditions: Conditions, pools: Iterable[StoredRecord], pool: StoredRecord, more: int
) -> None:
    """Refuse what a quota does not allow of a pool that grows by some nodes."""
    region = _region(pool)
    used = taken(pools, pool.project, region)
    for metric, amount in metrics(PoolInputs(pool.inputs)).items():
        limit = conditions.limit(pool.project, region, metric)
        if limit is None or more < 1:
            continue
        available = max(limit - used[metric], 0)
        if amount * more > available:
            raise GoogleApiError(
                "quota",
                metric=metric,
                asked=amount * more,
                short=amount * more - available,
                limit=limit,
                available=available,
                project=pool.project,
            )


def check_reservation(
    conditions: Conditions,
    pools: Iterable[StoredRecord],
    pool: StoredRecord,
    more: Mapping[str, int],
) -> None:
    """Refuse a specific reservation that is not there, not of these machines, or too small."""
    for zone, count in more.items():
        for refusal, values, free in _reserved(conditions, pools, pool, zone):
            if refusal != "reservation-full" or count > free:
                raise GoogleApiError(refusal, **{"asked": count, "short": count - free, **values})


def room(
    conditions: Conditions, pools: Iterable[StoredRecord], pool: StoredRecord, zone: str
) -> Room:
    """Return the number of further nodes that a pool can have in a zone."""
    pools = list(pools)
    read = PoolInputs(pool.inputs)
    found = [Room(None)]
    region = region_of(zone)
    used = taken(pools, pool.project, region)
    for metric, amount in metrics(read).items():
        limit = conditions.limit(pool.project, region, metric)
        if limit is not None:
            found.append(Room(max(limit - used[metric], 0) // amount, QUOTA))
    found += [
        Room(free, _REASONS[refusal])
        for refusal, _, free in _reserved(conditions, pools, pool, zone)
    ]
    found.append(in_stock(conditions, pools, pool, zone))
    return min(found, key=lambda room: float("inf") if room.left is None else room.left)


def _reserved(
    conditions: Conditions, pools: Iterable[StoredRecord], pool: StoredRecord, zone: str
) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield for each reservation the refusal of more nodes, its values, and the free machines."""
    read = PoolInputs(pool.inputs)
    for reference in _references(read):
        reservation = _reservation(conditions, pool.project, reference, zone)
        names = {"reference": reference, "pool": pool.name, "zone": zone}
        if reservation is None:
            yield "no-reservation", names, 0
            continue
        names["machine_type"] = reservation.machine_type
        if reservation.machine_type != read.machine_name:
            yield "unlike-reservation", {**names, "asked": read.machine_name}, 0
        else:
            yield "reservation-full", names, max(reservation.count - in_use(reservation, pools), 0)


def in_stock(
    conditions: Conditions, pools: Iterable[StoredRecord], pool: StoredRecord, zone: str
) -> Room:
    """Return the machines of the pool's kind that the zone has left; reservations keep theirs."""
    read = PoolInputs(pool.inputs)
    capacity = capacity_of(read)
    available = (
        None
        if capacity == "reservation"
        else conditions.available(zone, read.machine_name, capacity)
    )
    if available is None:
        return Room(None)
    used = sum(
        sizes_of(other).get(zone, 0)
        for other in pools
        if (PoolInputs(other.inputs).machine_name, capacity_of(PoolInputs(other.inputs)))
        == (read.machine_name, capacity)
    )
    return Room(max(available - used, 0), STOCK)


def stock_out(pool: StoredRecord, zone: str) -> str:
    """Return GKE's text about instances for which a zone has no machines."""
    running = sizes_of(pool).get(zone, 0)
    missing = missing_of(pool).get(zone, 0)
    taken = (pool.state.get("instances") or {}).get(zone) or []
    number = next(number for number in range(len(taken) + 1) if number not in taken)
    return (
        "Google Compute Engine: Not all instances running in IGM after 0s. Expected"
        f" {running + missing}, running {running}, transitioning {missing}. Current errors:"
        f" [GCE_STOCKOUT]: Instance '{node_name(pool, zone, number)}' creation failed:"
        f" ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/{pool.project}/zones/{zone}' does not"
        " have enough resources available to fulfill the request.  '(resource type:compute)'."
    )


def missing_of(pool: StoredRecord) -> dict[str, int]:
    """Instances that a pool should have, and that there are no machines for, by zone."""
    missing: dict[str, int] = pool.state.get("missing") or {}
    return {zone: count for zone, count in missing.items() if count > 0}


def _references(pool: PoolInputs) -> list[str]:
    if capacity_of(pool) != "reservation":
        return []
    return [
        str(value) for value in (pool.config.get("reservationAffinity") or {}).get("values") or []
    ]


def _reservation(
    conditions: Conditions, project: str, reference: str, zone: str
) -> Reservation | None:
    """Return the reservation of a name or path; only a path with its project can name a block."""
    match = _RESERVATION.fullmatch(reference)
    if match is None:
        found = conditions.reservation(project, reference)
        return found if found and found.zone == zone else None
    found = conditions.reservation(match["project"], match["name"])
    if found is None or found.zone != zone:
        return None
    has_block = match["block"] is None or match["block"] in found.blocks
    has_sub_block = match["sub_block"] is None or match["sub_block"] in found.sub_blocks
    return found if has_block and has_sub_block else None


def in_use(reservation: Reservation, pools: Iterable[StoredRecord]) -> int:
    """Return the machines of a reservation that pools use."""
    used = 0
    for pool in pools:
        for reference in _references(PoolInputs(pool.inputs)):
            match = _RESERVATION.fullmatch(reference)
            named = (match["project"], match["name"]) if match else (pool.project, reference)
            if named == (reservation.project, reservation.name):
                used += sizes_of(pool).get(reservation.zone, 0)
    return used


def taken(pools: Iterable[StoredRecord], project: str, region: str) -> Counter[str]:
    """Return the use of quotas by a project's pools in a region."""
    used: Counter[str] = Counter()
    for pool in pools:
        if (pool.project, _region(pool)) == (project, region):
            for metric, amount in metrics(PoolInputs(pool.inputs)).items():
                used[metric] += amount * sum(sizes_of(pool).values())
    return used


def _region(pool: StoredRecord) -> str:
    return region_of(pool.id.split("/")[3])
