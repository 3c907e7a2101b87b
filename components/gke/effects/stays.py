"""Values of Google's resources that stay, though the settings no longer ask for them.

The provider takes a field that is left out for one whose value may stay
(components/gke/provider_fields). The engine then shows no change at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.gke.provider_fields import CLUSTER, NODE_POOL, SUBNETWORK, left_out, resources
from berth.components.plan.plan import Step

_RENAME = "to be rid of it, rename the pool, which replaces it"

WAYS: Mapping[tuple[str, str], str] = {
    (NODE_POOL, "maxPodsPerNode"): "GKE's default is written as `maxPodsPerNode: 110`, which replaces the pool",
    (NODE_POOL, "nodeConfig.labels"): f"every node keeps these labels; {_RENAME}",
    (NODE_POOL, "nodeConfig.resourceLabels"): f"the provider sends no empty list of labels; {_RENAME}",
    (NODE_POOL, "nodeConfig.linuxNodeConfig"): f"write the kernel's own values as `sysctls`; {_RENAME}",
    (
        NODE_POOL,
        "nodeConfig.serviceAccount",
    ): "write the account that nodes are to have as `cluster.nodeServiceAccount`, which replaces every pool",
    (NODE_POOL, "nodeConfig.guestAccelerators"): f"GKE refuses these GPUs with a machine type that has none; {_RENAME}",
    (CLUSTER, "masterAuthorizedNetworksConfig"): (
        "write `authorizedNetworks: {all: 0.0.0.0/0}` to open the control plane to every network"
    ),
    (CLUSTER, "authenticatorGroupsConfig"): (
        "`gcloud container clusters update CLUSTER --security-group=''` switches Google Groups for RBAC off"
    ),
    (CLUSTER, "databaseEncryption"): (
        "`gcloud container clusters update CLUSTER --disable-database-encryption` gives the key up"
    ),
    (CLUSTER, "nodeLocations"): "write the zones that the cluster is to have as the environment's `zones`",
    (CLUSTER, "addonsConfig"): "`operators.kuberay.source: chart` switches GKE's Ray operator off, and `addon` on",
}
"""Advice about a value that stays, by type and path, for each field that berth does not always
send."""

QUIET: Mapping[tuple[str, str], str] = {
    (NODE_POOL, "nodeCount"): "the autoscaler's business from then on",
    (NODE_POOL, "initialNodeCount"): "counts only when the pool is made",
    (NODE_POOL, "upgradeSettings"): "left out for flex-start only, which replaces the pool",
    (
        NODE_POOL,
        "networkConfig.additionalNodeNetworkConfigs",
    ): "the provider empties this list itself, which replaces the pool",
    (CLUSTER, "addonsConfig.rayOperatorConfigs.rayClusterLoggingConfig"): "means nothing while the add-on is off",
    (CLUSTER, "addonsConfig.rayOperatorConfigs.rayClusterMonitoringConfig"): "means nothing while the add-on is off",
    (CLUSTER, "nodeConfig.serviceAccount"): "of the first pool, which is gone",
    (SUBNETWORK, "secondaryIpRanges"): "of the nodes' own subnetwork, which always has them",
    (SUBNETWORK, "privateIpGoogleAccess"): "of the nodes' own subnetwork, which always has it",
}
"""Why nothing is said of a value that stays."""


@dataclass(frozen=True)
class Stay:
    """A value that stays.

    Attributes:
        type: Pulumi's type of the resource.
        name: name of the resource.
        path: path of the value.
        value: the value.
        way: what to do about it.
    """

    type: str
    name: str
    path: str
    value: Any
    way: str


def stays_of(steps: Sequence[Step]) -> list[Stay]:
    """The values that stay, of resources that are not replaced."""
    found = []
    for step in steps:
        facts = resources().get(step.type)
        if facts is None or step.operation not in ("same", "update") or step.old is None or step.new is None:
            continue
        for path, value in left_out(step.old.inputs, step.new.inputs, facts):
            if (step.type, path) not in QUIET:
                way = WAYS.get((step.type, path), "to change it, write another value")
                found.append(Stay(step.type, step.name, path, value, way))
    return found
