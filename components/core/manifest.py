"""Kubernetes objects as plain manifests, and what berth adds to each one before it is applied."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any

from berth.components.core import fast_yaml

Manifest = dict[str, Any]
"""A Kubernetes object as it would be written in YAML."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "berth"}
"""The label of everything that berth makes in a cluster."""

FIELD_MANAGER = "pulumi.com/patchFieldManager"
"""Annotation of an object with the field manager of the stack that applies it."""

_NAME = re.compile(r"\$(\w+)")
_ENTRIES = re.compile(r"\$(\w+)\.\.\.")


def manifest_of(module: str, name: str, /, **values: Any) -> Manifest:
    """Return a manifest in manifests.yaml beside a module, with values in place of their `$names`.

    A text that is one name becomes the value, of whatever type; an entry without a value goes. In a
    list, `$name...` stands for the entries of a value.
    """
    filled: Manifest = _filled(_manifests(module)[name], values)
    return filled


@cache
def _manifests(module: str) -> Manifest:
    found: Manifest = fast_yaml.load_beside(module, "manifests.yaml")
    return found


def _filled(part: Any, values: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        entries = {key: _filled(inner, values) for key, inner in part.items()}
        return {key: inner for key, inner in entries.items() if inner is not None}
    if isinstance(part, list):
        more = [_ENTRIES.fullmatch(inner) if isinstance(inner, str) else None for inner in part]
        filled = (
            values[name[1]] if name else [_filled(inner, values)]
            for inner, name in zip(part, more, strict=True)
        )
        return list(chain.from_iterable(filled))
    if not isinstance(part, str):
        return part
    whole = _NAME.fullmatch(part)
    return values[whole[1]] if whole else _NAME.sub(lambda name: str(values[name[1]]), part)


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
    """The manifest with its stack named as the owner of the fields that it sets.

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
