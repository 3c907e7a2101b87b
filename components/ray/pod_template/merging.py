"""Merge of a patch into a pod template, and of one patch over another.

A patch is a JSON merge patch (RFC 7386), but for lists of named entries, such as containers, which
merge entry by entry, and tolerations, which are added.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.core.merge import REMOVES, merged
from berth.components.core.problems import SettingPath
from berth.components.core.types import parse_quantity
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.isolation import DEFAULT_LIMIT


def _identity_of_port(port: Mapping[str, Any]) -> tuple[Any, str]:
    return port["containerPort"], port.get("protocol", "TCP")


MERGED_LISTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "containers": itemgetter("name"),
    "initContainers": itemgetter("name"),
    "volumes": itemgetter("name"),
    "env": itemgetter("name"),
    "imagePullSecrets": itemgetter("name"),
    "volumeMounts": itemgetter("mountPath"),
    "ports": _identity_of_port,
}
"""Lists of a pod whose entries merge, with what tells the entries apart."""

CONTAINER_LISTS = ("initContainers", "containers")
"""Fields of a pod with containers."""


def key_of_entries(field: str) -> str:
    """Return the key of entries by which a list merges."""
    return {"volumeMounts": "mountPath", "ports": "containerPort"}.get(field, "name")


def merged_patches(below: Manifest, above: Manifest) -> Manifest:
    """Return one patch for two, of which `above` wins; removals stay, for the template below."""
    return merged(below, above, by_name=MERGED_LISTS)


def patched(template: Manifest, patch: Manifest) -> Manifest:
    """Return a pod template with a patch merged into it.

    Tolerations are added, though Kubernetes merges them as one value: the pods of a pool with
    taints need berth's. A container that the patch adds sees no GPUs.
    """
    if not patch:
        return template
    result = merged(template, copy.deepcopy(patch), by_name=MERGED_LISTS, removes=True)
    own_names = {container["name"] for container in _containers_of(template)}
    for container in _containers_of(result):
        if container["name"] not in own_names:
            _raise_limits(container)
            # NVIDIA's runtime reads a missing value as "all".
            no_gpus = {"name": VISIBLE_DEVICES, "value": "void"}
            container["env"] = [*(container.get("env") or []), no_gpus]
    added = (patch.get("spec") or {}).get("tolerations")
    if added:
        own = template["spec"].get("tolerations") or []
        result["spec"]["tolerations"] = [*own, *(entry for entry in added if entry not in own)]
    return result


def without_idle_directives(patch: Manifest) -> Manifest:
    """Return a patch with `$patch` only in entries that it removes.

    Entries of lists that do not merge, and null in place of `delete`, remove nothing.
    """
    without: Manifest = _without_idle_directives(patch, "")
    return without


def changed_parts(
    template: Any, patch: Any, path: SettingPath = (), names: SettingPath = ()
) -> Iterator[tuple[SettingPath, SettingPath, Any]]:
    """Yield what a template has and a patch changes or removes: path, path by names, own value.

    Args:
        template: a part of the template.
        patch: the same part of the patch.
        path: path of the part, with positions in the patch's lists.
        names: path of the part, with names in place of positions.
    """
    identity = MERGED_LISTS.get(str(path[-1])) if path else None
    if isinstance(template, dict) and isinstance(patch, dict) and REMOVES not in patch:
        for key in patch:
            adds = (*names, key) == ("spec", "tolerations")
            if key in template and not adds:
                yield from changed_parts(template[key], patch[key], (*path, key), (*names, key))
    elif isinstance(template, list) and isinstance(patch, list) and identity:
        own = {identity(entry): entry for entry in template}
        for position, entry in enumerate(patch):
            key = identity(entry)
            if key in own:
                name = entry[key_of_entries(str(path[-1]))]
                yield from changed_parts(own[key], entry, (*path, position), (*names, name))
    elif template != patch:
        yield path, names, template


def _containers_of(template: Manifest) -> Iterator[Manifest]:
    for kind in CONTAINER_LISTS:
        yield from template["spec"].get(kind) or []


def _raise_limits(container: Manifest) -> None:
    """Give a container limits where its requests are more than the limits of the LimitRange."""
    requests = (container.get("resources") or {}).get("requests") or {}
    for resource, most in DEFAULT_LIMIT.items():
        if resource in requests and parse_quantity(requests[resource]) > parse_quantity(most):
            resources = container["resources"]
            limits = dict(resources.get("limits") or {})
            limits.setdefault(resource, requests[resource])
            resources["limits"] = limits


def _without_idle_directives(value: Any, field: str) -> Any:
    if isinstance(value, dict):
        return {key: _without_idle_directives(inner, key) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    entries = [_without_idle_directives(entry, "") for entry in value]
    for entry in entries:
        merges = field in MERGED_LISTS and isinstance(entry, dict) and entry.get(REMOVES)
        if isinstance(entry, dict) and not merges:
            entry.pop(REMOVES, None)
    return entries
