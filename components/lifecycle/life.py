"""Live state of a berth's lifecycle, such as its expiry, and why it is suspended."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from berth.components.programs.decision import (
    CLOSED,
    DELETE_DUE,
    HELD_UP,
    KEEPER,
    KUEUE,
    OUTSIDE_HOURS,
    QUEUE_LABEL,
    SUSPENSION,
    next_begin,
    owner_of_suspend,
    state_of,
    timestamp,
)
from berth.components.programs.lifetimes import IDLE, Lifetime, lifetime_of

PERSON = "person"
"""Value of `suspended_by` for a berth that the keeper did not suspend."""


@dataclass(frozen=True)
class Life:
    """Lifecycle of a berth. Moments are as the API server writes them, "" for none."""

    created: str
    expires: str = ""
    suspended_by: str = ""
    """`hours`, `idle` or `expired` (the keeper), `kueue`, or `person`; "" if awake."""
    until: str = ""
    """Moment at which the keeper wakes the berth."""
    held_up: str = ""
    """Why the keeper does not suspend the berth yet, though that is due."""
    closed: str = ""
    """Why no pod may start in the berth's namespace."""
    delete_due: str = ""
    """Moment since which the berth is due to be deleted."""
    zone: str = "UTC"
    idle: str = ""
    problem: str = ""
    """Part of the lifecycle that cannot be read."""

    def expired(self, now: datetime) -> bool:
        """Return whether the berth has expired."""
        return bool(self.expires) and now >= datetime.fromisoformat(self.expires)


def life_of(cluster: dict[str, Any], now: datetime | None = None) -> Life:
    """Return the lifecycle of a berth, by its RayCluster (cluster/owned.py); by default now."""
    metadata = cluster["metadata"]
    if not metadata.get("creationTimestamp"):
        return Life("")
    annotations = metadata.get("annotations") or {}
    state = state_of(cluster)
    problem = ""
    try:
        lifetime = lifetime_of(annotations)
    except ValueError as error:
        lifetime = Lifetime()
        problem = str(error)
    suspended_by = ""
    if state.suspended:
        suspended_by = state.suspended_by or (KUEUE if by_kueue(metadata) else PERSON)
    wakes_at = None
    if state.suspended_by == OUTSIDE_HOURS:
        wakes_at = next_begin(lifetime, now or datetime.now(UTC))
    return Life(
        created=str(metadata["creationTimestamp"]),
        expires=_stamp_of(lifetime.expires_at(state.begin)),
        suspended_by=suspended_by,
        until=_stamp_of(wakes_at),
        held_up=annotations.get(HELD_UP, ""),
        closed=annotations.get(CLOSED, ""),
        delete_due=annotations.get(DELETE_DUE, ""),
        zone=lifetime.zone,
        idle=annotations.get(IDLE, ""),
        problem=problem,
    )


def _stamp_of(moment: datetime | None) -> str:
    return timestamp(moment) if moment else ""


def by_kueue(metadata: dict[str, Any]) -> bool:
    """Return whether Kueue decides when a RayCluster runs."""
    manager, _ = owner_of_suspend(metadata, "f:spec")
    queued = QUEUE_LABEL in (metadata.get("labels") or {}) and manager not in (KEEPER, SUSPENSION)
    return queued or manager.startswith(KUEUE)
