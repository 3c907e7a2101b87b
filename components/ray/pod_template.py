"""Patch of a pod template: its form, and how it is merged into the template that berth makes.

It is a JSON merge patch (RFC 7386), but for lists of named entries, such as containers, which merge
entry by entry, and tolerations, which are added.
"""

import copy
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import InitErrorDetails, ValidationError

from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES, merged
from berth.components.core.problems import Path
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import DEFAULT_LIMIT
from berth.components.ray.pod_fields import MERGED, key_of, problems

_CONTAINERS = ("initContainers", "containers")


def _checked(patch: Manifest) -> Manifest:
    """Return a patch with quantities as text.

    Raises:
        ValidationError: the patch has fields that a pod lacks, or that are berth's in every pod.
    """
    patch = copy.deepcopy(patch)
    if wrong := list(problems(patch)):
        details = [
            InitErrorDetails(type="value_error", loc=path, input=None, ctx={"error": ValueError(message)})
            for path, message in wrong
        ]
        raise ValidationError.from_exception_data("podTemplate", details)
    return patch


PodTemplate = Annotated[
    dict[str, Any], AfterValidator(_checked), WithJsonSchema({"type": "object", "additionalProperties": True})
]
"""Patch of a pod template: `metadata` and `spec` as in Kubernetes."""


def over(below: Manifest, above: Manifest) -> Manifest:
    """Return one patch for two, of which `above` wins; removals stay, for the template below."""
    return merged(below, above, by_name=MERGED)


def patched(template: Manifest, patch: Manifest) -> Manifest:
    """Return a pod template with a patch merged into it.

    Tolerations are added, though Kubernetes merges them as one value: the pods of a pool with
    taints need berth's. A container that the patch adds sees no GPUs.
    """
    if not patch:
        return template
    result = merged(template, copy.deepcopy(patch), by_name=MERGED, removes=True)
    before = {container["name"] for kind in _CONTAINERS for container in template["spec"].get(kind) or []}
    for kind in _CONTAINERS:
        for container in result["spec"].get(kind) or []:
            if container["name"] not in before:
                _limit(container)
                # NVIDIA's runtime reads a missing value as "all".
                container["env"] = [*(container.get("env") or []), {"name": VISIBLE_DEVICES, "value": "void"}]
    own = template["spec"].get("tolerations") or []
    if added := (patch.get("spec") or {}).get("tolerations"):
        result["spec"]["tolerations"] = [*own, *(entry for entry in added if entry not in own)]
    return result


def _limit(container: Manifest) -> None:
    """Give a container limits where its requests are more than the limits of the LimitRange."""
    requests = (container.get("resources") or {}).get("requests") or {}
    for resource, most in DEFAULT_LIMIT.items():
        if resource in requests and parse_quantity(requests[resource]) > parse_quantity(most):
            limits = container["resources"]["limits"] = dict(container["resources"].get("limits") or {})
            limits.setdefault(resource, requests[resource])


def clashes(base: Any, patch: Any, path: Path = (), names: Path = ()) -> Iterator[tuple[Path, Path, Any]]:
    """Yield what a template has and a patch changes or removes: path, path by names, own value."""
    if isinstance(base, dict) and isinstance(patch, dict) and REMOVES not in patch:
        for key in (key for key in patch if key in base):
            if names != ("spec",) or key != "tolerations":
                yield from clashes(base[key], patch[key], (*path, key), (*names, key))
    elif isinstance(base, list) and isinstance(patch, list) and (identity := MERGED.get(str(path[-1]))):
        own = {identity(entry): entry for entry in base}
        for number, entry in enumerate(patch):
            if (key := identity(entry)) in own:
                name = entry[key_of(str(path[-1]))]
                yield from clashes(own[key], entry, (*path, number), (*names, name))
    elif base != patch:
        yield path, names, base


def added_containers(patch: Manifest, ray: str) -> list[Manifest]:
    """Return the containers that a patch runs beside Ray's container, named `ray`."""
    spec = patch.get("spec") or {}
    before = [container for container in spec.get("initContainers") or [] if container.get("restartPolicy") == "Always"]
    beside = [container for container in spec.get("containers") or [] if container["name"] != ray]
    return [container for container in (*before, *beside) if REMOVES not in container]


def added_requests(patch: Manifest, ray: str, resource: str) -> Decimal:
    """Return what containers beside Ray's request of a resource; a limit is a request too."""
    total = Decimal(0)
    for container in added_containers(patch, ray):
        resources = container.get("resources") or {}
        amounts = (resources.get("limits") or {}) | (resources.get("requests") or {})
        total += parse_quantity(str(amounts.get(resource) or 0))
    return total
