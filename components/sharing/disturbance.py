"""What a change of sharing does to nodes that are in use: said in the plan, since it looks like a harmless edit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.components.hardware.names import CONFIG_LABEL, MIG_LABEL, WHOLE_KEY
from berth.components.sharing.pools import Pools

Occupants = Mapping[str, Sequence[str]]
"""Names of the berths and clusters of this stack whose workers are on a pool, by the pool's name."""

KEEPS = "running pods keep their GPUs until they restart, new ones find the new number"
_STOPS = (
    "the MIG manager stops every pod with a GPU on them, and a Container-Optimized OS node restarts: work there is lost"
)


def of_configs(old: Mapping[str, Any], new: Mapping[str, Any], pools: Pools, occupants: Occupants) -> list[str]:
    """Pools whose nodes read another device plugin config than before.

    Args:
        old: Helm's `devicePlugin.config` before.
        new: the same after.
        pools: the pools by name.
        occupants: who is on them.
    """
    before, after = old.get("data") or {}, new.get("data") or {}
    lines = []
    for name, pool in pools.items():
        key = pool.settings.sharing or WHOLE_KEY
        if pool.settings.by_operator and key in before and before[key] != after.get(key):
            lines.append(_line(name, f"sharing profile {key!r} changes", KEEPS, occupants.get(name, ())))
    return lines


def of_labels(pool: str, old: Mapping[str, str], new: Mapping[str, str], occupants: Iterable[str]) -> list[str]:
    """Return a line with the occupants where a pool's nodes get another profile or MIG layout.

    Args:
        pool: the pool's name.
        old: node labels before.
        new: node labels after.
        occupants: names of those who work on the pool.
    """
    change = label_change(pool, old, new)
    return [f"{change} ({_who(occupants)})"] if change else []


def label_change(pool: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return what happens where a pool's nodes get another profile or MIG layout; empty where they do not."""
    if old.get(MIG_LABEL) != new.get(MIG_LABEL):
        change = f"the MIG layout changes from {old.get(MIG_LABEL, 'none')} to {new.get(MIG_LABEL, 'none')}"
        return _sentence(pool, change, _STOPS)
    if old.get(CONFIG_LABEL) != new.get(CONFIG_LABEL):
        return _sentence(pool, f"the sharing profile changes from {_name(old)} to {_name(new)}", KEEPS)
    return ""


def _name(labels: Mapping[str, str]) -> str:
    return labels.get(CONFIG_LABEL, "GKE's own device plugin")


def _line(pool: str, change: str, effect: str, occupants: Iterable[str]) -> str:
    return f"{_sentence(pool, change, effect)} ({_who(occupants)})"


def _sentence(pool: str, change: str, effect: str) -> str:
    return f"pool {pool}: {change}; the device plugin restarts on its nodes; {effect}"


def _who(occupants: Iterable[str]) -> str:
    names = ", ".join(occupants)
    return (
        f"on them: {names}, and what engineers' own stacks have there" if names else "nobody of this stack is on them"
    )
