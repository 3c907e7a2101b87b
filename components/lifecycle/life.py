"""Live state of a berth's lifecycle: its age, its expiry, and why it is suspended."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from berth.components.programs.decision import CLOSED, DELETE_DUE, HELD_UP, OUTSIDE_HOURS, known_of, next_begin, stamp
from berth.components.programs.lifetimes import IDLE, SETTINGS, Lifetime, lifetime_of

PERSON = "person"
"""Value of `suspended_by` for a berth that the keeper did not suspend."""

KUEUE = "kueue"
"""Value of `suspended_by` for a berth that Kueue holds back until its queue has room."""


@dataclass(frozen=True)
class Life:
    """Lifecycle of a berth. Moments are as the API server writes them, "" for none."""

    created: str
    """Moment of the berth's creation."""
    expires: str = ""
    """Moment of the berth's expiry."""
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
    """Time zone of the berth's settings."""
    idle: str = ""
    """Setting `idle` of the berth, "" for none."""
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
    until = next_begin(lifetime, now or datetime.now(UTC)) if known.suspended_by == OUTSIDE_HOURS else None
    return Life(
        created=str(metadata["creationTimestamp"]),
        expires=stamp(expires) if expires else "",
        suspended_by=(known.suspended_by or (KUEUE if _by_kueue(metadata) else PERSON)) if known.suspended else "",
        until=stamp(until) if until else "",
        held_up=annotations.get(HELD_UP, ""),
        closed=annotations.get(CLOSED, ""),
        delete_due=annotations.get(DELETE_DUE, ""),
        zone=lifetime.zone if any(key in annotations for key in SETTINGS) else "UTC",
        idle=annotations.get(IDLE, ""),
        problem=problem,
    )


def _by_kueue(metadata: dict[str, Any]) -> bool:
    """Return whether Kueue wrote last whether a RayCluster is suspended."""
    written = [entry for entry in metadata.get("managedFields") or () if "f:suspend" in str(entry.get("fieldsV1"))]
    managers = [str(entry.get("manager")) for entry in sorted(written, key=lambda entry: str(entry.get("time")))]
    return managers[-1:] != [] and managers[-1].startswith("kueue")
