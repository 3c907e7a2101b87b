"""Rules of the Kubernetes scheduler: on which nodes a pod may be, and what it takes of one. Pure.

Affinity between pods, spreading and volumes are left out; taints are in components/cluster.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from berth.components.cluster.api import Object
from berth.components.core.types import parse_quantity

Amounts = dict[str, Decimal]


def selected(spec: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a pod's node selector and affinity admit a node with these labels."""
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else []
    return not required or any(_term_matches(term, labels) for term in terms)


def _term_matches(term: Object, labels: Mapping[str, str]) -> bool:
    """Whether labels fit a term; the lab's nodes have no fields to match."""
    rules = term.get("matchExpressions") or []
    return not term.get("matchFields") and all(_matches(rule, labels) for rule in rules)


def _matches(rule: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    values = rule.get("values") or []
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            if value is None or not value.isdecimal():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """Quantities as numbers."""
    return {name: parse_quantity(str(value)) for name, value in (resources or {}).items()}


def requests(spec: Object) -> Amounts:
    """Resources that a pod with this spec takes of a node, the pod's own place among them."""
    total: Amounts = {"pods": Decimal(1)}
    for container in spec.get("containers") or []:
        _add(total, (container.get("resources") or {}).get("requests"))
    for container in spec.get("initContainers") or []:
        for name, amount in amounts((container.get("resources") or {}).get("requests")).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    _add(total, spec.get("overhead"))
    return total


def _add(total: Amounts, resources: Mapping[str, Any] | None) -> None:
    for name, amount in amounts(resources).items():
        total[name] = total.get(name, Decimal(0)) + amount
