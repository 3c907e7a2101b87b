"""Effects of another sharing profile on nodes in use; the edit may stop pods."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.components.hardware.names import CONFIG_LABEL, WHOLE_KEY
from berth.components.plan.effect import Effect, Level, sitting_on, where_somebody_works
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Step
from berth.components.sharing.modes import MODES
from berth.components.sharing.pools import Pools

Labels = Mapping[str, str]
Occupants = Mapping[str, Sequence[str]]
"""Names of the stack's berths and clusters with workers on a pool, by the pool's name."""

_BY_GKE = "GKE's own device plugin"

KEEPS = "running pods keep their GPUs until they restart, new ones find the new number"


def lines_of_configs(
    old: Mapping[str, Any], new: Mapping[str, Any], pools: Pools, occupants: Occupants
) -> list[str]:
    """Return a line for each pool whose nodes get another device plugin config."""
    keys = {
        name: pool.settings.sharing or WHOLE_KEY
        for name, pool in pools.items()
        if pool.settings.by_operator
    }
    return [
        f"{text} ({_who(occupants.get(name, ()))})"
        for name, text in config_changes(old, new, keys).items()
    ]


def config_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], keys: Mapping[str, str]
) -> dict[str, str]:
    """Return the effects of another device plugin config, by the pool that chooses the key."""
    before = old.get("data") or {}
    after = new.get("data") or {}
    return {
        name: _sentence(name, f"sharing profile {key!r} changes", KEEPS)
        for name, key in keys.items()
        if key in before and before[key] != after.get(key)
    }


def lines_of_labels(pool: str, old: Labels, new: Labels, occupants: Iterable[str]) -> list[str]:
    """Return a line with the occupants where a pool's nodes get another profile or MIG layout."""
    change, _ = _label_change(pool, old, new)
    return [f"{change} ({_who(occupants)})"] if change else []


def effects_of_node_labels(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effect of changed node labels that choose a sharing profile or a MIG layout."""
    name = str(step.before.get("name", step.name))
    before = fleet.before.get(name)
    after = fleet.after.get(name)
    if step.operation != "update" or before is None or after is None:
        return []
    text, stops_pods = _label_change(name, before.labels, after.labels)
    sitting = sitting_on(fleet, [name])
    level = where_somebody_works(fleet, sitting) if stops_pods else Level.DISTURBS
    return [Effect(level, text, sitting)] if text else []


def _label_change(pool: str, old: Labels, new: Labels) -> tuple[str, bool]:
    """Return the effect of other labels, "" for none, and whether it stops pods."""
    for mode in MODES:
        if mode.label and old.get(mode.label) != new.get(mode.label):
            change = f"{old.get(mode.label, 'none')} to {new.get(mode.label, 'none')}"
            choice, effect = mode.label_change
            return _sentence(pool, f"{choice} changes from {change}", effect), True
    before = old.get(CONFIG_LABEL, _BY_GKE)
    after = new.get(CONFIG_LABEL, _BY_GKE)
    if before == after:
        return "", False
    return _sentence(pool, f"the sharing profile changes from {before} to {after}", KEEPS), False


def _sentence(pool: str, change: str, effect: str) -> str:
    return f"pool {pool}: {change}; the device plugin restarts on its nodes; {effect}"


def _who(occupants: Iterable[str]) -> str:
    names = ", ".join(occupants)
    if not names:
        return "no berth of this stack is on them"
    return f"on them: {names}, and what engineers' own stacks have there"
