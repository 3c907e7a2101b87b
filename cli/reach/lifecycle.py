"""Remarks on a berth's lifecycle."""

from berth.cli.reach.moments import moment_in_zone
from berth.components.core.owner import namespace_of
from berth.components.lifecycle import Life
from berth.components.programs import decision

EXTEND = "give it a later `lifecycle.expires` and run berth up"


def lifecycle_remarks(name: str, life: Life) -> list[str]:
    """Return remarks on a berth's lifecycle; none for a berth that is awake and stays so."""
    remarks = []
    if life.suspended_by:
        remarks.append(_suspension(name, life))
    if life.held_up:
        remarks.append(f"{name} is to be suspended: {life.held_up}")
    if life.closed:
        remarks.append(
            f"{name} is closed: {life.closed}; after berth wake {name}, pods start at the keeper's"
            " next look"
        )
    if life.delete_due:
        since = moment_in_zone(life.delete_due, life.zone)
        remarks.append(
            f"{name} is due to be deleted since {since}: berth engineer remove {name}, or destroy"
            " its stack with berth destroy"
        )
    if life.problem:
        remarks.append(f"{name} has a lifecycle that cannot be read: {life.problem}")
    return remarks


def _suspension(name: str, life: Life) -> str:
    """Return why a berth is suspended, and how it comes back."""
    back = f"berth wake {name}"
    match life.suspended_by:
        case decision.OUTSIDE_HOURS:
            until = f" until {moment_in_zone(life.until, life.zone)}" if life.until else ""
            return (
                f"{name} is suspended outside of its working hours{until}; back at once with:"
                f" {back}"
            )
        case decision.UNUSED:
            unused = f" for {life.idle}" if life.idle else ""
            return f"{name} is suspended, as nothing ran on it{unused}; back with: {back}"
        case decision.EXPIRED:
            expiry = moment_in_zone(life.expires, life.zone)
            return f"{name} is suspended, as it expired on {expiry}; {EXTEND}, then: {back}"
        case decision.KUEUE:
            return (
                f"{name} waits for room in its queue: Kueue suspends and starts it, and berth wake"
                " does not help; kubectl get workloads.kueue.x-k8s.io"
                f" --namespace={namespace_of(name)}"
            )
        case _:
            return f"{name} was suspended manually, until you wake it: {back}"
