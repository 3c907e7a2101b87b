"""Namespaces of berths that no state knows: a killed update leaves them."""

from collections.abc import Sequence

from berth.cli.reach.environment import LiveEnvironment
from berth.components.cluster.api import Reader
from berth.components.cluster.owned import owners_of


def namespaces_not_in_state(environment: LiveEnvironment, reader: Reader) -> list[str]:
    """Return namespaces of berths of an environment's stack that the stack's state does not know.

    A killed update leaves them. The engineers' own stacks have states of their own, and a namespace
    may stay with its home.
    """
    if not environment.outputs:
        return []  # the user may not read the state
    in_state: set[str] = set()
    for output in ("berths", "clusters", "jobs", "services"):
        in_state.update(str(environment.outputs.get(output) or "").split(", "))
    owners = owners_of(reader).of_environment(environment.contract.name).of_stack(environment.stack)
    return sorted(
        namespace
        for namespace, owner in owners.by_namespace.items()
        if owner.name not in in_state and not owner.keeps_home
    )


def not_in_state_note(namespaces: Sequence[str], stack: str) -> tuple[str, str]:
    """Return what namespaces without a state are, and the command that removes them."""
    text = (
        f"the state of stack {stack} does not know {', '.join(namespaces)}: an update was killed,"
        " or runs now. What the settings have, the next update takes over; the rest is removed by"
        " hand"
    )
    return text, f"kubectl delete namespace {' '.join(namespaces)}"
