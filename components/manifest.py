"""Any Kubernetes object as a Pulumi resource, from the plain manifest that a pure function made."""

from __future__ import annotations

from typing import Any

import pulumi

Manifest = dict[str, Any]
"""A Kubernetes object as it would be written in YAML."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "berth"}
"""The label of everything that berth makes in a cluster."""


class KubernetesObject(pulumi.CustomResource):
    """One object, of any kind, of the `kubernetes` provider.

    The typed classes of pulumi_kubernetes register the same resource types, but importing those of one API group takes
    longer than all the rest of a program (core/v1: 0.4 s), and a manifest would have to be turned into arguments only to be
    turned back.
    """

    manifest: Manifest
    """What was asked for, but for values that are not known yet."""

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
        """Register the object.

        Args:
            name: Pulumi's name of the resource.
            manifest: the object; values may be outputs.
            opts: must carry the kubernetes provider, itself or through the parent.
        """
        self.manifest = manifest
        super().__init__(resource_type(manifest), name, owned(manifest, pulumi.get_stack()), opts)


def owned(manifest: Manifest, stack: str) -> Manifest:
    """The manifest with its stack named as the owner of the fields that it sets.

    A stack that runs again is the same owner and conflicts with nothing; two stacks that make one object are two owners,
    and the API server names the fields that they disagree on.
    """
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), _FIELD_MANAGER: f"berth-{stack}"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def forced(manifest: Manifest) -> Manifest:
    """The manifest, applied also where somebody else has written to its fields since: the fields are the stack's again.

    Only for what no other stack can claim at the same time.
    """
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), _FORCE: "true"}}}


_FIELD_MANAGER = "pulumi.com/patchFieldManager"
_FORCE = "pulumi.com/patchForce"


def resource_type(manifest: Manifest) -> str:
    """Pulumi's type of an object: `kubernetes:core/v1:Namespace`, `kubernetes:ray.io/v1:RayCluster`."""
    version = manifest["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"
