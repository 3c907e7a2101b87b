"""Kubernetes objects as plain manifests, and what berth adds to each one before it is applied."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from berth.components.core import fast_yaml

Manifest = dict[str, Any]
"""A Kubernetes object as it would be written in YAML."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "berth"}
"""The label of everything that berth makes in a cluster."""

FIELD_MANAGER = "pulumi.com/patchFieldManager"
"""Annotation of an object with the field manager of the stack that applies it."""

_NAME = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ENTRIES = re.compile(r"\$(\w+)\.\.\.")


def manifest_of(module: str, name: str, /, **values: Any) -> Manifest:
    """Return a manifest in manifests.yaml beside a module, filled with values.

    Args:
        module: the module's file.
        name: key of the manifest.
        values: values of the manifest's names; see `filled`.

    Raises:
        KeyError: there is no such manifest, or it has a name without a value.
    """
    manifest: Manifest = filled(_manifests(module)[name], **values)
    return manifest


@cache
def _manifests(module: str) -> dict[str, Manifest]:
    manifests: dict[str, Manifest] = fast_yaml.load_beside(module, "manifests.yaml")
    return manifests


def filled(template: Any, /, **values: Any) -> Any:
    """Return plain data with values in place of their names, `$name` or `${name}`.

    A text that is one name becomes the value, of whatever type; in a longer text the value is
    text. An entry of a mapping whose value is None goes. In a list, `$name...` stands for the
    entries of a list.

    Raises:
        KeyError: a name has no value.
    """
    if isinstance(template, dict):
        entries = {key: filled(inner, **values) for key, inner in template.items()}
        return {key: inner for key, inner in entries.items() if inner is not None}
    if isinstance(template, list):
        return _filled_list(template, values)
    if not isinstance(template, str):
        return template
    whole = _NAME.fullmatch(template)
    if whole:
        return values[whole[1] or whole[2]]
    return _NAME.sub(lambda name: str(values[name[1] or name[2]]), template)


def _filled_list(template: list[Any], values: dict[str, Any]) -> list[Any]:
    entries: list[Any] = []
    for entry in template:
        name = _ENTRIES.fullmatch(entry) if isinstance(entry, str) else None
        if name:
            entries.extend(values[name[1]])
        else:
            entries.append(filled(entry, **values))
    return entries


def value_at(value: Any, *path: str | int) -> Any:
    """Return the value at a path of keys; None where there is none."""
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def short_hash(value: Any) -> str:
    """Return a short hash of a plain value, for names that come from their content."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def owned_by_stack(manifest: Manifest, stack: str) -> Manifest:
    """Return the manifest with its stack named as the owner of the fields that it sets.

    A stack that runs again is the same owner and conflicts with nothing; two stacks that make one
    object are two owners, and the API server names the fields that they disagree on.
    """
    return _annotated(manifest, FIELD_MANAGER, f"berth-{stack}")


def forced(manifest: Manifest) -> Manifest:
    """Return the manifest, applied even where somebody else has written to its fields since.

    Only for what no other stack can claim at the same time.
    """
    return _annotated(manifest, "pulumi.com/patchForce", "true")


def unawaited(manifest: Manifest) -> Manifest:
    """Return the manifest, for which the provider does not wait after it has applied it."""
    return _annotated(manifest, "pulumi.com/skipAwait", "true")


def _annotated(manifest: Manifest, key: str, value: str) -> Manifest:
    metadata = manifest["metadata"]
    return {
        **manifest,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), key: value}},
    }


def resource_type(manifest: Manifest) -> str:
    """Return Pulumi's type of an object, such as `kubernetes:ray.io/v1:RayCluster`."""
    version = manifest["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"
