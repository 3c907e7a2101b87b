"""GKE cluster without node pools of its own, and its kubeconfig."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.accounts import node_account_address
from berth.components.gke.cluster_arguments import IGNORED_CHANGES, cluster_arguments
from berth.components.gke.errors.hook import error_hook
from berth.components.gke.kubeconfig import gke_kubeconfig
from berth.components.gke.network import Network
from berth.components.gke.settings import GkeSettings


@dataclass(frozen=True)
class ClusterInputs:
    """Inputs of a cluster."""

    settings: GkeSettings
    network: Network
    after: Sequence[pulumi.Resource] = ()
    """Resources that the cluster needs beside the network."""


class Cluster(pulumi.ComponentResource):
    """VPC-native cluster. Its default node pool is removed: every pool is one of the settings."""

    name: pulumi.Output[str]
    id: pulumi.Output[str]
    """Path `projects/P/locations/L/clusters/N`, which stays the same when the address changes."""
    version: pulumi.Output[str]
    """Version of the control plane, such as 1.35.2-gke.1842000."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig as JSON, secret. It gets credentials from gke-gcloud-auth-plugin."""

    def __init__(
        self, name: str, inputs: ClusterInputs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("berth:gke:Cluster", name, None, opts)
        network = inputs.network
        hooks = pulumi.ResourceHookBinding(
            on_error=[error_hook(self, "cluster", inputs.settings.project or "")]
        )
        cluster = gcp.container.Cluster(
            name,
            name=name,
            network=network.network,
            subnetwork=network.subnetwork,
            ip_allocation_policy={
                "cluster_secondary_range_name": network.pod_range,
                "services_secondary_range_name": network.service_range,
            },
            **cluster_arguments(inputs.settings, node_account_address(inputs.settings, name)),
            opts=pulumi.ResourceOptions(
                parent=self,
                # Nodes need all of the network, NAT and firewall too. It is deleted last.
                depends_on=[network, *inputs.after],
                # GKE's own protection acts after the pools are deleted; the engine's acts first.
                protect=inputs.settings.cluster.deletion_protection,
                ignore_changes=IGNORED_CHANGES,
                hooks=hooks,
            ),
        )
        self.name = cluster.name
        self.id = cluster.id
        self.version = cluster.master_version
        self.kubeconfig = pulumi.Output.secret(
            _kubeconfig(cluster, by_dns=bool(inputs.settings.cluster.dns_endpoint))
        )
        self.register_outputs({"name": self.name, "id": self.id, "kubeconfig": self.kubeconfig})


def _kubeconfig(cluster: gcp.container.Cluster, *, by_dns: bool) -> pulumi.Output[str]:
    endpoint = cluster.endpoint
    authority: pulumi.Input[str | None] = cluster.master_auth.cluster_ca_certificate
    if by_dns:
        # Its certificate is of an authority that everyone trusts.
        endpoint = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
        authority = None
    return pulumi.Output.all(cluster.name, endpoint, authority).apply(
        lambda values: gke_kubeconfig(*values)
    )
