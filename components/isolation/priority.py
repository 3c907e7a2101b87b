"""Which pods go first where there is no room for all."""

from __future__ import annotations

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.settings import DEVELOPMENT, PRODUCTION

# Operators have no class, which is 0: no berth preempts them. Below -10 the cluster's autoscaler would add no
# node for a pod (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler).
_CLASSES = {
    PRODUCTION: (0, "Named clusters of berth: they preempt engineers' berths."),
    DEVELOPMENT: (-1, "Engineers' berths: they give way to named clusters, and preempt nobody."),
}


def priority_classes() -> list[Manifest]:
    """The PriorityClasses of an environment."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "labels": MANAGED_BY},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if name == PRODUCTION else "Never",
            "description": description,
        }
        for name, (value, description) in _CLASSES.items()
    ]
