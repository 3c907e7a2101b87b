"""Kubernetes object of any kind as a Pulumi resource, registered from a plain manifest."""

import pulumi

from berth.components.core.manifest import Manifest, owned_by_stack, resource_type


class KubernetesObject(pulumi.CustomResource):
    """Object of any kind of the `kubernetes` provider.

    The typed classes of pulumi_kubernetes register the same resource types, but importing one API
    group takes longer than the rest of a program (core/v1: 0.4 s), and they take arguments instead
    of manifests.
    """

    manifest: Manifest
    """The registered manifest; its values may be outputs."""

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
        self.manifest = manifest
        super().__init__(
            resource_type(manifest), name, owned_by_stack(manifest, pulumi.get_stack()), opts
        )
