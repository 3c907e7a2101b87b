"""PriorityClasses of an environment: named clusters preempt engineers' berths."""

from __future__ import annotations

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.settings import DEVELOPMENT, PRODUCTION

# Operators have no class, hence priority 0, so no berth preempts them. For pods below -10 the
# cluster autoscaler adds no nodes
# (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler).
_CLASSES = {
    PRODUCTION: (0, "PreemptLowerPriority", "Named clusters of berth: they preempt engineers' berths."),
    DEVELOPMENT: (-1, "Never", "Engineers' berths: they give way to named clusters, and preempt nobody."),
}


def priority_classes() -> list[Manifest]:
    """Return the PriorityClasses of an environment."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "labels": MANAGED_BY},
            "value": value,
            "preemptionPolicy": policy,
            "description": description,
        }
        for name, (value, policy, description) in _CLASSES.items()
    ]
