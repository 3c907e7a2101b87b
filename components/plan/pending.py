"""Creations that a killed update left pending, by the engine's warning of them. Pure."""

import re

from berth.components.core.words import first_names

_PENDING = re.compile(
    r"^\s*\* (?P<urn>urn:pulumi:\S+), interrupted while (?P<doing>\w+)$", re.MULTILINE
)


def pending_creates(warning: str) -> list[str]:
    """Return the URNs of resources whose creation is pending, from the engine's warning of them.

    The text is that of pulumi, pkg/resource/deploy/deployment_executor.go. Every update repeats it.
    """
    return [found["urn"] for found in _PENDING.finditer(warning) if found["doing"] == "creating"]


def remedy_of_pending(warning: str, stack: str) -> str:
    """Return how to end pending creations; "" where a warning of the engine names none.

    A plain `pulumi refresh` leaves pending creations in the state.
    """
    if not (urns := pending_creates(warning)):
        return ""
    named = first_names([urn.rpartition("::")[2] for urn in urns])
    return (
        f"an update was killed while it created {named}, which may exist or not; look there, then"
        f" clear what is pending in the state: pulumi refresh -s {stack} --clear-pending-creates"
        " --yes"
    )
