"""Owner of a berth, as labels and names of its objects say it."""

from typing import Literal, get_args

from berth.components.core.manifest import MANAGED_BY

OwnerKind = Literal["engineer", "cluster", "job", "service"]
"""Kind of owner of a berth."""

ENVIRONMENT_LABEL = "berth/environment"
STACK_LABEL = "berth/stack"
OWNER_LABELS: dict[OwnerKind, str] = {kind: f"berth/{kind}" for kind in get_args(OwnerKind)}
"""Label that names the owner, by kind of owner."""

KEEPS_HOME = "berth/keeps-home"
"""Annotation of a berth's namespace: the namespace stays with the home when the berth goes."""


def owner_labels(environment: str, stack: str, kind: OwnerKind, name: str) -> dict[str, str]:
    """Return the labels of every object of a berth, pods included."""
    return {
        **MANAGED_BY,
        ENVIRONMENT_LABEL: environment,
        STACK_LABEL: stack,
        OWNER_LABELS[kind]: name,
    }


def namespace_of(name: str) -> str:
    """Return the namespace of the berth of an engineer, cluster, job or service."""
    return f"berth-{name}"
