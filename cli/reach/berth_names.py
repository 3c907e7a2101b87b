"""Names of berths in the settings of stacks."""

from collections.abc import Mapping
from typing import Any

KINDS = ("engineers", "clusters", "jobs", "services")
"""Settings of an environment whose keys are names of berths, clusters, jobs and services."""


def own_name(stack: str, settings: Mapping[str, Any]) -> str | None:
    """Return the engineer of an engineer's own stack; None for any other stack.

    A stack that creates only the isolation of a berth is not the one that has the RayCluster.
    """
    engineer = settings.get("engineer")
    if not isinstance(engineer, dict) or engineer.get("part") == "isolation":
        return None
    return str(engineer.get("name") or stack)


def keys_in(settings: Mapping[str, Any], *parts: str) -> list[str]:
    """Return the keys of parts of an environment's settings: `engineers`, `pools`."""
    environment = settings.get("environment")
    if not isinstance(environment, dict):
        return []
    keys: list[str] = []
    for part in parts:
        content = environment.get(part)
        if isinstance(content, dict):
            keys += map(str, content)
    return keys


def names_in(settings: Mapping[str, Any]) -> list[str]:
    """Return the engineers, clusters, jobs and services of an environment's settings."""
    return keys_in(settings, *KINDS)


def names_of_stack(stack: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names that a stack's settings have, an environment's or an engineer's."""
    names = names_in(settings)
    if own := own_name(stack, settings):
        names.append(own)
    return names
