"""Fields of Kubernetes objects of any kind: key, labels, annotations, conditions. Pure."""

from collections.abc import Mapping
from typing import Any, TypedDict

ObjectKey = tuple[str, str]
"""Namespace and name of an object."""


class Condition(TypedDict, total=False):
    """Condition in the status of an object."""

    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    message: str


def key_of(item: Mapping[str, Any]) -> ObjectKey:
    """Return the namespace and the name of an object."""
    return str(item["metadata"]["namespace"]), str(item["metadata"]["name"])


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of an object or a pod template."""
    return (item.get("metadata") or {}).get("labels") or {}


def annotations_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object or a pod template."""
    return (item.get("metadata") or {}).get("annotations") or {}


def condition_in(item: Mapping[str, Any], condition_type: str) -> Condition:
    """Return the condition of a type in an object's status; an empty one without it."""
    conditions: list[Condition] = (item.get("status") or {}).get("conditions") or []
    for condition in conditions:
        if condition.get("type") == condition_type:
            return condition
    return {}


def is_true(item: Mapping[str, Any], condition_type: str) -> bool:
    """Return whether an object has a condition of a type, and its status is `True`."""
    return condition_in(item, condition_type).get("status") == "True"


def is_seen(item: Mapping[str, Any]) -> bool:
    """Return whether the operator of an object has seen its newest edit."""
    observed = (item.get("status") or {}).get("observedGeneration") or 0
    return bool(observed >= item["metadata"].get("generation", 0))
