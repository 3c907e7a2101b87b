"""Values of Google's resources that stay, though the settings no longer ask for them.

The provider takes a field that is left out for one whose value may stay
(components/gke/provider_fields). The engine then shows no change at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.gke.provider_fields import (
    CLUSTER,
    NODE_POOL,
    resource_fields,
    values_left_out,
)
from berth.components.plan.plan import Step

_SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
_RENAME = "to be rid of it, rename the pool, which replaces it"

ADVICE: Mapping[str, Mapping[str, str]] = {
    NODE_POOL: {
        "maxPodsPerNode": (
            "GKE's default is written as `maxPodsPerNode: 110`, which replaces the pool"
        ),
        "nodeConfig.labels": f"every node keeps these labels; {_RENAME}",
        "nodeConfig.resourceLabels": f"the provider sends no empty list of labels; {_RENAME}",
        "nodeConfig.linuxNodeConfig": f"write the kernel's own values as `sysctls`; {_RENAME}",
        "nodeConfig.gcfsConfig": (
            "write `imageStreaming: false` to switch image streaming off, or `true`"
        ),
        "nodeConfig.serviceAccount": (
            "write the account that nodes are to have as `cluster.nodeServiceAccount`, which"
            " replaces every pool"
        ),
        "nodeConfig.guestAccelerators": (
            f"GKE refuses these GPUs with a machine type that has none; {_RENAME}"
        ),
    },
    CLUSTER: {
        "masterAuthorizedNetworksConfig": (
            "write `authorizedNetworks: {all: 0.0.0.0/0}` to open the control plane to every"
            " network"
        ),
        "controlPlaneEndpointsConfig": (
            "write `dnsEndpoint: false` or `ipEndpoint: true` to change how the control plane is"
            " reached"
        ),
        "authenticatorGroupsConfig": (
            "`gcloud container clusters update CLUSTER --security-group=''` switches Google Groups"
            " for RBAC off"
        ),
        "databaseEncryption": (
            "`gcloud container clusters update CLUSTER --disable-database-encryption` gives the key"
            " up"
        ),
        "nodeLocations": (
            "write the zones that the cluster is to have as the environment's `zones`"
        ),
        "addonsConfig": (
            "`operators.kuberay.source: chart` switches GKE's Ray operator off, and `addon` on"
        ),
    },
}
"""Advice about a value that stays, by type and path, for each field that berth does not always
send."""

UNMENTIONED: Mapping[str, Mapping[str, str]] = {
    NODE_POOL: {
        "nodeCount": "the autoscaler's business from then on",
        "initialNodeCount": "counts only when the pool is made",
        "upgradeSettings": "left out for flex-start only, which replaces the pool",
        "networkConfig.additionalNodeNetworkConfigs": (
            "the provider empties this list itself, which replaces the pool"
        ),
    },
    CLUSTER: {
        "addonsConfig.rayOperatorConfigs.rayClusterLoggingConfig": (
            "means nothing while the add-on is off"
        ),
        "addonsConfig.rayOperatorConfigs.rayClusterMonitoringConfig": (
            "means nothing while the add-on is off"
        ),
        "nodeConfig.serviceAccount": "of the first pool, which is gone",
    },
    _SUBNETWORK: {
        "secondaryIpRanges": "of the nodes' own subnetwork, which always has them",
        "privateIpGoogleAccess": "of the nodes' own subnetwork, which always has it",
    },
}
"""Reason why nothing is said of a value that stays, by type and path."""


@dataclass(frozen=True)
class Stay:
    """Value that stays.

    Attributes:
        type: Pulumi's type of the resource.
        name: Pulumi's name of the resource.
        path: path of the value in the resource's inputs.
        value: the value that stays.
        way: what to write to change it; a key of the document for programs (docs/preview.md).
    """

    type: str
    name: str
    path: str
    value: Any
    way: str


def values_that_stay(steps: Sequence[Step]) -> list[Stay]:
    """Return the values that stay, of resources that are not replaced."""
    stays = []
    for step in steps:
        resource = resource_fields().get(step.type)
        if resource is None or step.operation not in ("same", "update"):
            continue
        unmentioned = UNMENTIONED.get(step.type, {})
        advice = ADVICE.get(step.type, {})
        for path, value in values_left_out(step.before, step.after, resource):
            if path not in unmentioned:
                way = advice.get(path, "to change it, write another value")
                stays.append(Stay(step.type, step.name, path, value, way))
    return stays
