"""Any Kubernetes object as a Pulumi resource, from the plain manifest that a pure function made."""

from __future__ import annotations

import pulumi

from berth.components.core.manifest import Manifest, owned, resource_type


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
