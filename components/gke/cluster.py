"""A GKE cluster without node pools of its own, and the kubeconfig that reaches it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from components.gke.network import POD_RANGE, SERVICE_RANGE, Network
from stacks.settings.cluster import ClusterSettings


@dataclass(frozen=True)
class ClusterInputs:
    """What a cluster needs to know.

    Attributes:
        settings: channel, version, protection.
        project: Google Cloud project.
        zone: zone of control plane and nodes.
        network: the network that it is on.
    """

    settings: ClusterSettings
    project: str
    zone: str
    network: Network


class Cluster(pulumi.ComponentResource):
    """A VPC-native zonal cluster. Its default node pool is removed: every pool is one of the settings."""

    name: pulumi.Output[str]
    """The cluster's name."""
    id: pulumi.Output[str]
    """`projects/P/locations/L/clusters/N`: the same for the cluster's whole life, whatever its address."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig, as JSON, which gets its credentials from gke-gcloud-auth-plugin; secret."""

    def __init__(self, name: str, inputs: ClusterInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the cluster.

        Args:
            name: the cluster's name.
            inputs: settings and where it is.
            opts: Pulumi's options.
        """
        super().__init__("berth:gke:Cluster", name, None, opts)
        settings = inputs.settings
        cluster = container.Cluster(
            name,
            name=name,
            location=inputs.zone,
            network=inputs.network.network,
            subnetwork=inputs.network.subnetwork,
            networking_mode="VPC_NATIVE",
            # Network policies are enforced by Dataplane V2; it can only be chosen when the cluster is made.
            datapath_provider="ADVANCED_DATAPATH",
            ip_allocation_policy=container.ClusterIpAllocationPolicyArgs(
                cluster_secondary_range_name=POD_RANGE, services_secondary_range_name=SERVICE_RANGE
            ),
            release_channel=container.ClusterReleaseChannelArgs(channel=settings.release_channel),
            min_master_version=settings.version,
            workload_identity_config=container.ClusterWorkloadIdentityConfigArgs(
                workload_pool=f"{inputs.project}.svc.id.goog"
            ),
            remove_default_node_pool=True,
            initial_node_count=1,
            deletion_protection=settings.deletion_protection,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name, self.id = cluster.name, cluster.id
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(cluster.name, cluster.endpoint, cluster.master_auth.cluster_ca_certificate).apply(
                lambda known: kubeconfig(*known)
            )
        )
        self.register_outputs({"name": self.name, "id": self.id, "kubeconfig": self.kubeconfig})


def kubeconfig(name: str, endpoint: str, certificate_authority: str) -> str:
    """A kubeconfig for a GKE cluster.

    Args:
        name: name of the cluster, user and context in it.
        endpoint: host, or host:port, of the control plane.
        certificate_authority: its CA certificate, PEM in base64.

    Returns:
        JSON, which is YAML too. It holds no credential: kubectl, Helm and Pulumi run gke-gcloud-auth-plugin, as
        https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl describes.
    """
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": f"https://{endpoint}", "certificate-authority-data": certificate_authority},
                }
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "gke-gcloud-auth-plugin",
                            "installHint": "install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
                            "provideClusterInfo": True,
                        }
                    },
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )
