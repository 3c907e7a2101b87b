"""Checks of the pools' reservations: existence, machine type, zone, free machines."""

from collections.abc import Iterable
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.reach.reservations import machine_counts
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.cli.verbs.doctor.google_cloud.running_machines import RunningMachines
from berth.components.gke import PoolSettings
from berth.stacks.settings.environment import EnvironmentSettings

RESERVATIONS = Topic("reservations")


def check_reservations(
    google: GoogleClient, settings: EnvironmentSettings, machines: RunningMachines
) -> Iterable[DoctorFinding]:
    """Check the reservation of each pool that has one, in each of the pool's zones."""
    for name, pool in settings.pools.items():
        if pool.capacity.kind != "reservation" or pool.capacity.reservation is None:
            continue
        for zone in settings.zones_of(pool):
            own = sum((machine.pool, machine.zone) == (name, zone) for machine in machines or ())
            try:
                yield _check_reservation(google, name, pool, zone, own)
            except GoogleError as error:
                yield RESERVATIONS.unchecked(
                    f"{pool.capacity.reservation}: not checked: {error.problem}", error.remedy
                )


def _check_reservation(
    google: GoogleClient, name: str, pool: PoolSettings, zone: str, own: int
) -> DoctorFinding:
    """Check a reservation of a pool in a zone, where the pool has `own` machines now."""
    reservation = pool.capacity.reservation
    owner = pool.capacity.project or google.project
    in_zone = f"--zone={zone} --project={owner}"
    describe = f"gcloud compute reservations describe {reservation} {in_zone}"
    path = f"projects/{owner}/zones/{zone}/reservations/{reservation}"
    answer = google.exists("compute", path)
    if answer is None:
        return RESERVATIONS.missing(
            f"pool {name}: zone {zone} of project {owner} has no reservation {reservation}",
            f"gcloud compute reservations list --project={owner}   # to have one: berth"
            " docs gke#reservation",
        )
    unfit = _why_unfit(answer, pool)
    if unfit:
        return RESERVATIONS.missing(f"pool {name}: reservation {reservation} {unfit}", describe)
    place = f"reservation {reservation} in {zone}"
    counts = machine_counts(answer)
    if pool.capacity.block:
        path = f"{path}/reservationBlocks/{pool.capacity.block}"
        block = google.exists("compute", path)
        if block is None:
            return RESERVATIONS.missing(
                f"pool {name}: {place} has no block {pool.capacity.block}",
                f"gcloud compute reservations blocks list {reservation} {in_zone}",
            )
        place = f"block {pool.capacity.block} of {place}"
        counts = machine_counts(block)
    if pool.capacity.sub_block:
        sub_block = google.exists(
            "compute", f"{path}/reservationSubBlocks/{pool.capacity.sub_block}"
        )
        if sub_block is None:
            return RESERVATIONS.missing(
                f"pool {name}: {place} has no sub-block {pool.capacity.sub_block}",
                f"gcloud compute reservations sub-blocks list {reservation}"
                f" --block-name={pool.capacity.block} {in_zone}",
            )
        place = f"sub-block {pool.capacity.sub_block} of {place}"
        counts = machine_counts(sub_block)
    used_by_others = max(counts.in_use - own, 0)
    free = counts.count - used_by_others
    machine = pool.machine_type
    most = pool.nodes_at_most
    if most > free:
        return RESERVATIONS.missing(
            f"pool {name}: {place} has {counts.count} {machine}, others use {used_by_others}, and"
            f" the pool takes up to {most}",
            f"{describe}   # then fewer nodes in pools.{name}.nodes, or more machines: berth"
            " docs gke#reservation",
        )
    return RESERVATIONS.fine(
        f"pool {name}: {place} has {counts.count} {machine}, {free} of them for the pool's {most}"
    )


def _why_unfit(reservation: dict[str, Any], pool: PoolSettings) -> str:
    """Return why a pool cannot take machines of a reservation; empty if it can."""
    if reservation.get("status") not in (None, "READY"):
        return f"is {reservation['status']}, not READY"
    specific = reservation.get("specificReservation") or {}
    properties = specific.get("instanceProperties") or {}
    machine = properties.get("machineType")
    if machine and machine != pool.machine_type:
        return f"has machines of type {machine}, but the pool's are {pool.machine_type}"
    maintenance = properties.get("maintenanceInterval")
    if maintenance and maintenance != (pool.host_maintenance or "").upper().replace("-", "_"):
        setting = maintenance.lower().replace("_", "-")
        return (
            f"has maintenance interval {maintenance}, which its pools must have too; write"
            f" hostMaintenance: {setting}"
        )
    if reservation.get("resourcePolicies") and pool.compact_placement:
        return (
            "has a placement policy of its own, beside which GKE takes no other; take"
            " compactPlacement out"
        )
    ssds = len(properties.get("localSsds") or ())
    if ssds and ssds != pool.local_ssd_count:
        return f"has machines with {ssds} local SSDs, but the pool's have {pool.local_ssd_count}"
    if reservation.get("specificReservationRequired") is False:
        return (
            "is open to any machine of the project, so no pool can name it; leave the pool's"
            " `capacity` out to use it"
        )
    return ""
