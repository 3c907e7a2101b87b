"""Fields that every Kubernetes object may have: labels, annotations and conditions. Pure."""

from collections.abc import Mapping
from typing import Any

from berth.components.cluster.api import Object


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of an object or a pod template."""
    return (item.get("metadata") or {}).get("labels") or {}


def annotations_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object or a pod template."""
    return (item.get("metadata") or {}).get("annotations") or {}


def conditions_of(item: Mapping[str, Any]) -> dict[str, Object]:
    """Return the conditions of an object by their type."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return {condition["type"]: condition for condition in conditions}


def is_true(item: Mapping[str, Any], condition: str) -> bool:
    """Return whether an object has a condition of a type, and its status is `True`."""
    return conditions_of(item).get(condition, {}).get("status") == "True"


def is_seen(item: Mapping[str, Any]) -> bool:
    """Return whether the operator of an object has seen its newest edit."""
    observed = (item.get("status") or {}).get("observedGeneration") or 0
    return bool(observed >= item["metadata"].get("generation", 0))
