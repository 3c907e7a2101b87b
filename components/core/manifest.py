"""Kubernetes objects as plain manifests, and what berth adds to each one before it is applied."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object as it would be written in YAML."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "berth"}
"""The label of everything that berth makes in a cluster."""

FIELD_MANAGER = "pulumi.com/patchFieldManager"
"""Annotation of an object with the field manager of the stack that applies it."""


def owned(manifest: Manifest, stack: str) -> Manifest:
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
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), key: value}}}


def resource_type(manifest: Manifest) -> str:
    """Return Pulumi's type of an object, such as `kubernetes:ray.io/v1:RayCluster`."""
    version = manifest["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"
