"""A GKE cluster without node pools of its own, and the kubeconfig that reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_gcp import container

from berth.components.gke.cluster_arguments import IGNORED_CHANGES, cluster_arguments
from berth.components.gke.explained import explained
from berth.components.gke.kubeconfig import kubeconfig
from berth.components.gke.network import Network
from berth.components.gke.settings import GkeSettings


@dataclass(frozen=True)
class ClusterInputs:
    """What a cluster needs to know.

    Attributes:
        settings: of the whole environment: the cluster's own, where it is, and what its pools need of it.
        network: the network that it is on.
        arguments: the cluster's arguments, where they are derived from the settings already.
    """

    settings: GkeSettings
    network: Network
    arguments: Mapping[str, Any] | None = None


class Cluster(pulumi.ComponentResource):
    """A VPC-native cluster. Its default node pool is removed: every pool is one of the settings."""

    name: pulumi.Output[str]
    """The cluster's name."""
    id: pulumi.Output[str]
    """`projects/P/locations/L/clusters/N`: the same for the cluster's whole life, whatever its address."""
    version: pulumi.Output[str]
    """The control plane's version, such as 1.35.2-gke.1842000."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig, as JSON, which gets its credentials from gke-gcloud-auth-plugin; secret."""

    def __init__(self, name: str, inputs: ClusterInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the cluster.

        Args:
            name: the cluster's name.
            inputs: settings and network.
            opts: Pulumi's options.
        """
        super().__init__("berth:gke:Cluster", name, None, opts)
        network = inputs.network
        hooks = pulumi.ResourceHookBinding(on_error=[explained(self, "cluster", inputs.settings.project or "")])
        cluster = container.Cluster(
            name,
            name=name,
            network=network.network,
            subnetwork=network.subnetwork,
            ip_allocation_policy={
                "cluster_secondary_range_name": network.pod_range,
                "services_secondary_range_name": network.service_range,
            },
            **(inputs.arguments or cluster_arguments(inputs.settings)),
            opts=pulumi.ResourceOptions(
                parent=self,
                # All of the network first, NAT and firewall too: nodes are no good without. And it goes last.
                depends_on=[network],
                # GKE's own protection is asked when the pools are gone already; the engine's, before anything is.
                protect=inputs.settings.cluster.deletion_protection,
                ignore_changes=IGNORED_CHANGES,
                hooks=hooks,
            ),
        )
        self.name, self.id, self.version = cluster.name, cluster.id, cluster.master_version
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(cluster.name, cluster.endpoint, cluster.master_auth.cluster_ca_certificate).apply(
                lambda known: kubeconfig(*known)
            )
        )
        self.register_outputs({"name": self.name, "id": self.id, "kubeconfig": self.kubeconfig})
