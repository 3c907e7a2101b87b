"""Layers of a RayCluster's settings as plain data: `defaults`, its own, `worker`, groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.ray.pod_template.merging import merged_patches

Layer = dict[str, Any]
"""Settings as written, by field name, without the keys that are left out."""

WORKER_GROUP = "workers"
"""Name of the only group, where the settings name none."""

HEAD_GROUP = "headgroup"
"""Name of the head's group in KubeRay and Ray (kuberay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""

_REPLACED_WHOLE = ("workers", "hours")
"""Settings that are replaced as a whole."""

_ENTRIES_REPLACED_WHOLE = ("env", "secrets", "volumes")
"""Settings whose entries are replaced as a whole."""

_REPLACED_BY = {"image": "image_has", "workers": "worker_groups", "worker_groups": "workers"}
"""Key of the defaults that goes when a RayCluster has a key of its own."""


@dataclass(frozen=True)
class GroupLayer:
    """Settings of a group of workers as written, in all layers.

    Attributes:
        name: name of the group.
        path: path of the worker's settings in those of the RayCluster.
        values: the settings by field name, with what the group has from `worker`.
    """

    name: str
    path: tuple[str, ...]
    values: Layer


def settings_over_defaults(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> Layer:
    """Return the settings of a RayCluster over those of `defaults`."""
    gone = {replaced for key, replaced in _REPLACED_BY.items() if key in own}
    return _merged({key: value for key, value in defaults.items() if key not in gone}, own)


def group_layers(settings: Mapping[str, Any]) -> list[GroupLayer]:
    """Return the groups of a RayCluster, each with what it has from `worker`.

    They are sorted by name: KubeRay would recreate all pods for another order.
    """
    worker = settings.get("worker", {})
    groups = settings.get("worker_groups")
    if not groups:
        values = dict(worker)
        if "workers" in settings:
            values["workers"] = settings["workers"]
        return [GroupLayer(WORKER_GROUP, ("worker",), values)]
    return [
        GroupLayer(name, ("workerGroups", name), _merged(worker, group))
        for name, group in sorted(groups.items())
    ]


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Layer:
    """Return `above` over `below`, key by key."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        under = below[key]
        value = above[key]
        if isinstance(value, dict) and isinstance(under, dict):
            result[key] = _merged_value(key, under, value)
    return result


def _merged_value(key: str, below: Layer, above: Layer) -> Layer:
    """Return the mapping of a setting `above` over the one `below`."""
    if key in _REPLACED_WHOLE:
        return above
    if key == "pod_template":
        return merged_patches(below, above)
    if key in _ENTRIES_REPLACED_WHOLE:
        return below | above
    if key == "worker_groups":
        # A group may have the name of a setting.
        groups = {name: _merged(below.get(name, {}), group) for name, group in above.items()}
        return below | groups
    return _merged(below, above)
