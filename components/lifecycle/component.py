"""Keeper as a Pulumi component."""

from collections.abc import Iterable

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import Manifest


class Keeper(pulumi.ComponentResource):
    """CronJob that suspends and wakes berths, with its namespace, program and rights."""

    def __init__(
        self, name: str, manifests: Iterable[Manifest], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("berth:index:Keeper", name, None, opts)
        registered: list[pulumi.Resource] = []
        for manifest in manifests:
            # The first object is the namespace.
            needed = list(registered) if manifest["kind"] == "CronJob" else registered[:1]
            after = pulumi.ResourceOptions(parent=self, depends_on=needed)
            registered.append(KubernetesObject(manifest["metadata"]["name"], manifest, after))
        self.register_outputs({})
