"""A GKE cluster without node pools of its own, its kubeconfig, and the account of its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.cluster_arguments import IGNORED_CHANGES, cluster_arguments
from berth.components.gke.errors.hook import error_hook
from berth.components.gke.kubeconfig import gke_kubeconfig
from berth.components.gke.names import NODE_ROLES, account_id, address, node_account
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
            **cluster_arguments(inputs.settings, node_account(inputs.settings, name)),
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
        self.name, self.id, self.version = cluster.name, cluster.id, cluster.master_version
        known = pulumi.Output.all(
            cluster.name, cluster.endpoint, cluster.master_auth.cluster_ca_certificate
        )
        if inputs.settings.cluster.dns_endpoint:
            # Its certificate is of an authority that everyone trusts.
            name_in_dns = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
            known = pulumi.Output.all(cluster.name, name_in_dns, None)
        self.kubeconfig = pulumi.Output.secret(known.apply(lambda values: gke_kubeconfig(*values)))
        self.register_outputs({"name": self.name, "id": self.id, "kubeconfig": self.kubeconfig})


class NodeAccount(pulumi.ComponentResource):
    """Service account that only the nodes of one cluster run as, with the roles that they need."""

    def __init__(self, name: str, project: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("berth:gke:NodeAccount", name, None, opts)
        hooks = pulumi.ResourceHookBinding(on_error=[error_hook(self, "node-account", project)])
        account = gcp.serviceaccount.Account(
            f"{name}-nodes",
            account_id=account_id(name),
            project=project,
            display_name=f"berth: nodes of cluster {name}",
            opts=pulumi.ResourceOptions(parent=self, hooks=hooks),
        )
        for role in NODE_ROLES:
            gcp.projects.IAMMember(
                f"{name}-nodes-{role.rpartition('/')[2]}",
                project=project,
                role=role,
                # Written out, so that a plan shows it before the account exists.
                member=f"serviceAccount:{address(name, project)}",
                opts=pulumi.ResourceOptions(parent=self, hooks=hooks, depends_on=[account]),
            )
        self.register_outputs({})
