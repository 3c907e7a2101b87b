"""Layers of a RayCluster's settings as plain data: `defaults`, its own, `worker`, groups."""

from collections.abc import Mapping
from typing import Any

from berth.components.ray.pod_template.merging import merged_patches

Layer = dict[str, Any]
"""Settings as written, by field name, without the keys that are left out."""

WORKER_GROUP = "workers"
"""Name of the only group, where the settings name none."""

HEAD_GROUP = "headgroup"
"""Name of the head's group in KubeRay and Ray (kuberay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""

_WHOLE = ("workers", "hours")
"""Settings that are replaced as a whole."""

_ENTRIES_WHOLE = ("env", "secrets", "volumes")
"""Settings whose entries are replaced as a whole."""

_REPLACED = {"image": "image_has", "workers": "worker_groups", "worker_groups": "workers"}
"""Key of the defaults that goes when a RayCluster has a key of its own."""


def over_defaults(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> Layer:
    """Return the settings of a RayCluster over those of `defaults`."""
    gone = {replaced for key, replaced in _REPLACED.items() if key in own}
    return over({key: value for key, value in defaults.items() if key not in gone}, own)


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Layer:
    """Return `above` over `below`, key by key."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        under, value = below[key], above[key]
        if not isinstance(value, dict) or not isinstance(under, dict) or key in _WHOLE:
            continue
        if key == "pod_template":
            result[key] = merged_patches(under, value)
        elif key == "worker_groups":
            # A group may have the name of a setting.
            result[key] = under | {
                name: over(under.get(name, {}), group) for name, group in value.items()
            }
        else:
            result[key] = under | value if key in _ENTRIES_WHOLE else over(under, value)
    return result


def groups_of(given: Mapping[str, Any]) -> dict[str, Layer]:
    """Return the groups of a RayCluster by name, each with what it has from `worker`.

    They are sorted by name: KubeRay would recreate all pods for another order.
    """
    worker, groups = given.get("worker", {}), given.get("worker_groups")
    if groups:
        return {name: over(worker, group) for name, group in sorted(groups.items())}
    return {WORKER_GROUP: worker | {key: given[key] for key in ("workers",) if key in given}}


def within(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the path of a group's worker in the settings of its RayCluster."""
    return ("workerGroups", name) if given.get("worker_groups") else ("worker",)
