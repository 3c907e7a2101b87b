"""Effects of a change of an operator's Helm release or DaemonSet."""

from berth.components.core import fast_yaml
from berth.components.operators.settings import OPERATORS
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import below
from berth.components.plan.plan import Step

_QUIET: list[str] = fast_yaml.beside(__file__, "words.yaml")["quiet"]
"""Inputs of a release whose change restarts nothing."""


def of_release(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a Helm release."""
    removed = step.operation in ("replace", "delete")
    changed = [change.path for change in step.properties if not any(below(change.path, quiet) for quiet in _QUIET)]
    if not changed and not removed:
        return []
    # The name alone, for an OCI reference and for a folder too.
    chart = str(step.before.get("chart") or "").rstrip("/").rsplit("/", 1)[-1]
    for operator in OPERATORS:
        if operator.release == chart:
            return operator.effects(step, fleet, changed)
    if not removed:
        return [Effect(Level.DISTURBS, f"release {step.name}: what it installs restarts where it changes")]
    again = ", then installed again" if step.operation == "replace" else ""
    return [Effect(Level.DESTROYS, f"release {step.name} is removed{again}, with everything that it installed")]


def of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect] | None:
    """Return the effects of a change of an operator's DaemonSet; None for another DaemonSet."""
    name = (step.before.get("metadata") or {}).get("name")
    for operator in OPERATORS:
        if operator.daemon_set and str(name).startswith(operator.daemon_set):
            return operator.effects(step, fleet, [change.path for change in step.properties])
    return None
