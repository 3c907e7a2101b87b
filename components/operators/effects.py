"""Effects of a change of an operator's Helm release or DaemonSet."""

from berth.components.operators.settings import OPERATORS
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.paths import below
from berth.components.plan.plan import Step

_QUIET = (
    "timeout",
    "repositoryOpts",
    "checksum",
    "resourceNames",
    "description",
    "skipAwait",
    "atomic",
    "cleanupOnFail",
    "disableOpenapiValidation",
)
"""Inputs of a release whose change restarts nothing."""


def release_effects(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a Helm release."""
    is_removed = step.operation in ("replace", "delete")
    changed = [change.path for change in step.properties if not _is_quiet(change.path)]
    if not changed and not is_removed:
        return []
    chart = _chart_name(step)
    for operator in OPERATORS:
        if operator.release == chart:
            return operator.effects(step, fleet, changed)
    return [_effect_of_unknown_release(step)]


def daemon_set_effects(step: Step, fleet: PlannedFleet) -> list[Effect] | None:
    """Return the effects of a change of an operator's DaemonSet; None for another DaemonSet."""
    name = (step.before.get("metadata") or {}).get("name")
    for operator in OPERATORS:
        if operator.daemon_set and str(name).startswith(operator.daemon_set):
            return operator.effects(step, fleet, [change.path for change in step.properties])
    return None


def _is_quiet(path: str) -> bool:
    return any(below(path, quiet) for quiet in _QUIET)


def _chart_name(step: Step) -> str:
    """Return the name alone of a release's chart, for an OCI reference and for a folder too."""
    return str(step.before.get("chart") or "").rstrip("/").rsplit("/", 1)[-1]


def _effect_of_unknown_release(step: Step) -> Effect:
    if step.operation not in ("replace", "delete"):
        text = f"release {step.name}: what it installs restarts where it changes"
        return Effect(Level.DISTURBS, text)
    again = ", then installed again" if step.operation == "replace" else ""
    text = f"release {step.name} is removed{again}, with everything that it installed"
    return Effect(Level.DESTROYS, text)
