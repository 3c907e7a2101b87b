"""Live state of a berth's lifecycle: its age, its expiry, and why it is suspended."""

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
    known_of,
    next_begin,
    owner_of_suspend,
    stamp,
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
    known = known_of(cluster)
    problem, lifetime = "", Lifetime()
    try:
        lifetime = lifetime_of(annotations)
    except ValueError as error:
        problem = str(error)
    expires = lifetime.expires_at(known.begin)
    until = (
        next_begin(lifetime, now or datetime.now(UTC))
        if known.suspended_by == OUTSIDE_HOURS
        else None
    )
    return Life(
        created=str(metadata["creationTimestamp"]),
        expires=stamp(expires) if expires else "",
        suspended_by=(known.suspended_by or (KUEUE if by_kueue(metadata) else PERSON))
        if known.suspended
        else "",
        until=stamp(until) if until else "",
        held_up=annotations.get(HELD_UP, ""),
        closed=annotations.get(CLOSED, ""),
        delete_due=annotations.get(DELETE_DUE, ""),
        zone=lifetime.zone,
        idle=annotations.get(IDLE, ""),
        problem=problem,
    )


def by_kueue(metadata: dict[str, Any]) -> bool:
    """Return whether Kueue decides when a RayCluster runs."""
    manager, _ = owner_of_suspend(metadata, "f:spec")
    queued = QUEUE_LABEL in (metadata.get("labels") or {}) and manager not in (KEEPER, SUSPENSION)
    return queued or manager.startswith(KUEUE)
