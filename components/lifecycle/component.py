"""Keeper as a Pulumi component."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY
from berth.components.gke import PoolSettings
from berth.components.lifecycle import manifests
from berth.components.lifecycle.settings import KeeperSettings


@dataclass(frozen=True)
class KeeperInputs:
    """Inputs of the keeper."""

    environment: str
    """Name of the environment whose berths the keeper looks after."""
    image: str
    """Image with Python 3.11 or newer."""
    pools: Mapping[str, PoolSettings]
    """Node pools that the keeper may run on, by name."""
    settings: KeeperSettings = field(default_factory=KeeperSettings)
    """How often the keeper runs."""


class Keeper(pulumi.ComponentResource):
    """CronJob that suspends and wakes berths, with its namespace, program and rights."""

    def __init__(self, name: str, inputs: KeeperInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the keeper."""
        super().__init__("berth:index:Keeper", name, None, opts)
        registered: list[pulumi.Resource] = []
        for manifest in manifests.keeper(
            inputs.environment, inputs.image, inputs.settings.schedule, inputs.pools, MANAGED_BY
        ):
            # The first object is the namespace.
            needed = list(registered) if manifest["kind"] == "CronJob" else registered[:1]
            after = pulumi.ResourceOptions(parent=self, depends_on=needed)
            registered.append(KubernetesObject(manifest["metadata"]["name"], manifest, after))
        self.register_outputs({})
