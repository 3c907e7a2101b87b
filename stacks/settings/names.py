"""Names that default to the stack's name, which must then be valid there too."""

from __future__ import annotations

from berth.components.core.problems import Path, Problem
from berth.components.core.types import checked_name
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings

CLUSTER_NAME_LIMIT = 40
"""Most characters of a GKE cluster's name (https://docs.cloud.google.com/kubernetes-engine/quotas)."""


def name_problems(stack: str, settings: EnvironmentSettings | EngineerSettings) -> list[Problem]:
    """Return the problems with the cluster's or the berth's name, which `Dev_1` cannot be."""
    if isinstance(settings, EngineerSettings):
        return _problems(stack, settings.name, ("engineer", "name"), None)
    if settings.cluster.existing:
        return []
    return _problems(stack, settings.cluster.name, ("environment", "cluster", "name"), CLUSTER_NAME_LIMIT)


def _problems(stack: str, given: str | None, path: Path, limit: int | None) -> list[Problem]:
    name = given or stack
    from_stack = "" if given else "; it is the stack's name: give another one here"
    try:
        checked_name(name)
    except ValueError as error:
        return [Problem(path, f"{error}{from_stack}")]
    if limit and len(name) > limit:
        return [Problem(path, f"{name!r} has {len(name)} characters; GKE allows {limit}{from_stack}")]
    return []
