"""PriorityClasses of pods: their names, and those that an environment has."""

import re
from typing import Annotated, Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.core.types import NonEmpty, must_match

PRODUCTION = "berth-production"
"""PriorityClass of named clusters."""

DEVELOPMENT = "berth-development"
"""PriorityClass of engineers' berths: named clusters preempt them."""

# It has 200 characters at most: a quota's name has 253, and begins with other words.
_CLASS = re.compile(r"(?=.{1,200}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

PriorityClass = Annotated[
    NonEmpty,
    must_match(
        _CLASS, "is not the name of a PriorityClass: lowercase letters, digits, '-' and '.'"
    ),
    must_match(
        re.compile("(?!system-).*"),
        f"is reserved for system pods of the cluster; take {PRODUCTION} or a class of your own",
    ),
]
"""Name of a PriorityClass."""


def priority_classes() -> list[Manifest]:
    """Return the PriorityClasses of an environment: named clusters preempt engineers' berths.

    Operators have no class, hence priority 0, so no berth preempts them.
    """
    production = {
        "value": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": "Named clusters of berth: they preempt engineers' berths.",
    }
    development = {
        # For pods below -10 the cluster autoscaler adds no nodes
        # (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler).
        "value": -1,
        "preemptionPolicy": "Never",
        "description": "Engineers' berths: they give way to named clusters, and preempt nobody.",
    }
    return [_priority_class(PRODUCTION, production), _priority_class(DEVELOPMENT, development)]


def _priority_class(name: str, fields: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": MANAGED_BY},
        **fields,
    }
