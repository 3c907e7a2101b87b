"""Containers of a patch: those beside Ray's own container, and what all request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PatchedContainer:
    """A container that a patch adds or changes, with the resources that the patch gives it.

    Attributes:
        name: name of the container.
        runs_before: whether the container ends before Ray's own starts.
        requests: amounts by resource; a limit is a request where none is written.
        limits: amounts by resource.
    """

    name: str
    runs_before: bool
    requests: Mapping[str, Decimal]
    limits: Mapping[str, Decimal]


def patched_containers(patch: Manifest) -> Iterator[PatchedContainer]:
    """Yield the containers of a patch of a pod template."""
    spec = patch.get("spec") or {}
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            if REMOVES in container:
                continue
            resources = container.get("resources") or {}
            limits = resources.get("limits") or {}
            yield PatchedContainer(
                container["name"],
                field == "initContainers" and container.get("restartPolicy") != "Always",
                _amounts(limits | (resources.get("requests") or {})),
                _amounts(limits),
            )


def request_of_pod(patch: Manifest, resource: str) -> Decimal:
    """Return what the containers of a patch request of a resource that only they have."""
    running = Decimal(0)
    before = Decimal(0)
    for container in patched_containers(patch):
        amount = container.requests.get(resource, Decimal(0))
        if container.runs_before:
            before = max(before, amount)
        else:
            running += amount
    return max(running, before)


def _amounts(quantities: Mapping[str, object]) -> dict[str, Decimal]:
    return {
        name: parse_quantity(str(quantity))
        for name, quantity in quantities.items()
        if quantity is not None
    }
