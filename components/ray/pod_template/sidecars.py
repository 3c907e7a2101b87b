"""Containers that a patch runs beside Ray's own container, and what they request."""

from decimal import Decimal

from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES
from berth.components.core.types import parse_quantity


def requests_of_sidecars(patch: Manifest, ray: str, resource: str) -> Decimal:
    """Return what sidecars request of a resource; a limit is a request too.

    Args:
        patch: patch of a pod template.
        ray: name of Ray's own container.
        resource: `cpu` or `memory`.
    """
    total = Decimal(0)
    for container in _sidecars(patch, ray):
        resources = container.get("resources") or {}
        amounts = (resources.get("limits") or {}) | (resources.get("requests") or {})
        total += parse_quantity(str(amounts.get(resource) or 0))
    return total


def _sidecars(patch: Manifest, ray: str) -> list[Manifest]:
    spec = patch.get("spec") or {}
    sidecars = [
        container
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    ]
    sidecars += [
        container for container in spec.get("containers") or [] if container["name"] != ray
    ]
    return [container for container in sidecars if REMOVES not in container]
