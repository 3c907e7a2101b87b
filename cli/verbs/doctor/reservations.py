"""Reservations that pools take their machines from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.cli.verbs.doctor.machines_in_use import Running, in_pool
from berth.components.gke import PoolSettings
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("reservations")

# The docs' page that leads to capacity which is not just ordered:
# https://docs.cloud.google.com/ai-hypercomputer/docs/reservation
_HOW = "docs/gke.md, Capacity"


def check(google: Google, settings: EnvironmentSettings, machines: Sequence[Running] | None) -> Iterable[Finding]:
    """Yield findings about pools' reservations: existence, machine type, zone, free machines.

    Args:
        google: the project.
        settings: of the environment.
        machines: those that run in the project now; None where they could not be listed.
    """
    for name, pool in settings.pools.items():
        if pool.capacity.kind != "reservation" or pool.capacity.reservation is None:
            continue
        for zone in settings.zones_of(pool):
            own = in_pool(list(machines or []), name)[zone]
            try:
                yield _reservation(google, name, pool, zone, own)
            except GoogleError as error:
                yield TOPIC.unchecked(f"{pool.capacity.reservation}: not checked: {error.problem}", error.remedy)


def _reservation(google: Google, name: str, pool: PoolSettings, zone: str, own: int) -> Finding:
    capacity, owner = pool.capacity, pool.capacity.project or google.project
    path = f"projects/{owner}/zones/{zone}/reservations/{capacity.reservation}"
    found = google.exists("compute", path)
    if found is None:
        listing = f"gcloud compute reservations list --project={owner}   # to have one: {_HOW}"
        return TOPIC.missing(
            f"pool {name}: zone {zone} of project {owner} has no reservation {capacity.reservation}", listing
        )
    show = f"gcloud compute reservations describe {capacity.reservation} --zone={zone} --project={owner}"
    wrong = _of_other_kind(found, pool)
    if wrong:
        return TOPIC.missing(f"pool {name}: reservation {capacity.reservation} {wrong}", show)
    counts, place = _counts(found.get("specificReservation") or {}), f"reservation {capacity.reservation} in {zone}"
    if capacity.block:
        answer = google.exists("compute", f"{path}/reservationBlocks/{capacity.block}")
        if answer is None:
            return TOPIC.missing(
                f"pool {name}: {place} has no block {capacity.block}",
                f"gcloud compute reservations blocks list {capacity.reservation} --zone={zone} --project={owner}",
            )
        counts, place = _counts(answer.get("resource") or answer), f"block {capacity.block} of {place}"
    count, in_use = counts
    free = count - max(in_use - own, 0)
    if pool.nodes_at_most > free:
        return TOPIC.missing(
            f"pool {name}: {place} has {count} {pool.machine_type}, others use {count - free}, and the pool takes up to"
            f" {pool.nodes_at_most}",
            f"{show}   # then fewer nodes in pools.{name}.nodes, or more machines: {_HOW}",
        )
    return TOPIC.fine(
        f"pool {name}: {place} has {count} {pool.machine_type}, {free} of them for the pool's {pool.nodes_at_most}"
    )


def _of_other_kind(found: dict[str, Any], pool: PoolSettings) -> str:
    """Why a reservation does not do for a pool, or ""."""
    if found.get("status") not in (None, "READY"):
        return f"is {found['status']}, not READY"
    machine = ((found.get("specificReservation") or {}).get("instanceProperties") or {}).get("machineType")
    if machine and machine != pool.machine_type:
        return f"has machines of type {machine}, but the pool's are {pool.machine_type}"
    return ""


def _counts(counts: dict[str, Any]) -> tuple[int, int]:
    """Machines that there are, and those in use; numbers come as text."""
    return int(counts.get("count") or 0), int(counts.get("inUseCount") or 0)
