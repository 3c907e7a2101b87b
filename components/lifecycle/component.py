"""The keeper as a component of an environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import MANAGED_BY
from berth.components.lifecycle import manifest
from berth.components.lifecycle.settings import KeeperSettings
from berth.components.sharing import Pools


@dataclass(frozen=True)
class KeeperInputs:
    """What the keeper needs to know.

    Attributes:
        environment: name of the environment whose berths it keeps.
        settings: how often it looks.
        image: with Python 3.11 or newer.
        heads: names of the pools that heads run on.
        pools: the environment's node pools by name.
    """

    environment: str
    settings: KeeperSettings
    image: str
    heads: Iterable[str]
    pools: Pools


class Keeper(pulumi.ComponentResource):
    """Namespace, program, rights and CronJob of what suspends and wakes berths."""

    def __init__(self, name: str, inputs: KeeperInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make it.

        Args:
            name: Pulumi's name.
            inputs: what it is to know.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:index:Keeper", name, None, opts)
        made = KubernetesObject(manifest.NAMESPACE, manifest.namespace(MANAGED_BY), pulumi.ResourceOptions(parent=self))
        objects = manifest.keeper(
            inputs.environment,
            inputs.image,
            inputs.settings.schedule,
            inputs.heads,
            inputs.pools,
            MANAGED_BY,
        )
        before: list[pulumi.Resource] = [made]
        for each in objects:
            # The CronJob comes last: before there are its rights, and their limits, it does not run.
            last = each["kind"] == "CronJob"
            opts_of_it = pulumi.ResourceOptions(parent=self, depends_on=list(before) if last else [made])
            before.append(KubernetesObject(each["metadata"]["name"], each, opts_of_it))
        self.register_outputs({})
