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


def check(google: Google, settings: EnvironmentSettings, machines: Sequence[Running] | None) -> Iterable[Finding]:
    """Yield findings about pools' reservations: existence, machine type, zone, free machines."""
    for name, pool in settings.pools.items():
        if pool.capacity.kind != "reservation" or pool.capacity.reservation is None:
            continue
        for zone in settings.zones_of(pool):
            own = in_pool(list(machines or []), name)[zone]
            try:
                yield _reservation(google, name, pool, zone, own)
            except GoogleError as error:
                named = pool.capacity.reservation
                yield TOPIC.found("unknown", reservation=named, reason=error.problem, remedy=error.remedy)


def _reservation(google: Google, name: str, pool: PoolSettings, zone: str, own: int) -> Finding:
    capacity, owner = pool.capacity, pool.capacity.project or google.project
    path = f"projects/{owner}/zones/{zone}/reservations/{capacity.reservation}"
    facts: dict[str, Any] = {"pool": name, "reservation": capacity.reservation, "zone": zone, "owner": owner}
    found = google.exists("compute", path)
    if found is None:
        return TOPIC.found("none", **facts)
    if wrong := _of_other_kind(found, pool):
        return TOPIC.found("unfit", wrong=wrong, **facts)
    counts, place = _counts(found.get("specificReservation") or {}), f"reservation {capacity.reservation} in {zone}"
    if capacity.block:
        answer = google.exists("compute", f"{path}/reservationBlocks/{capacity.block}")
        if answer is None:
            return TOPIC.found("no-block", place=place, block=capacity.block, **facts)
        counts, place = _counts(answer.get("resource") or answer), f"block {capacity.block} of {place}"
    count, in_use = counts
    free = count - max(in_use - own, 0)
    facts |= {"place": place, "count": count, "machine": pool.machine_type, "most": pool.nodes_at_most}
    if pool.nodes_at_most > free:
        return TOPIC.found("too-small", used=count - free, **facts)
    return TOPIC.found("enough", free=free, **facts)


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
