"""Settings of an environment's GKE cluster: a new one, or an existing one."""

import re
from typing import Annotated, Literal

from pydantic import Field

from berth.components.cluster.kubeconfig import Login
from berth.components.core.settings import Settings
from berth.components.core.types import (
    Cidr,
    Instant,
    KmsKey,
    Name,
    NodeAccount,
    NonEmpty,
    SecurityGroup,
    must_match,
)
from berth.components.gke.argument_patches.setting import ClusterPatch

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)

GKE_VERSION = r"\d+\.\d+(\.\d+)?(-gke\.\d+)?"


class ExistingCluster(Settings):
    """Existing cluster: berth creates no network, cluster or node pool, and installs on this one.

    The environment's `pools` then describe its pools. The label cloud.google.com/gke-nodepool of a
    node names its pool.
    """

    kubeconfig: Annotated[NonEmpty, Field(examples=["~/.kube/config"])]
    """Kubeconfig file, relative to the project's folder. Its credentials stay out of the state:
    every machine needs the file."""
    context: Annotated[NonEmpty | None, Field(examples=["gke_your-project_us-central1-b_prod"])] = (
        None
    )
    """Context in the kubeconfig. Default: its current one."""

    @property
    def login(self) -> Login:
        """Login to the cluster, as the settings name it."""
        return Login(self.kubeconfig, self.context)


class Exclusion(Settings):
    """Time without automatic upgrades."""

    start: Annotated[Instant, Field(examples=["2026-12-18T00:00:00Z"])]
    """Begin."""
    end: Annotated[Instant | None, Field(examples=["2027-01-08T00:00:00Z"])] = None
    """End. Default: the end of support of the cluster's version."""
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = (
        "NO_MINOR_OR_NODE_UPGRADES"
    )
    """Upgrades that GKE leaves out. Patches of the control plane go on, except with `NO_UPGRADES`,
    which needs an `end`."""


class Maintenance(Settings):
    """Times of GKE's automatic upgrades. Maintenance of the nodes' hosts follows none of them."""

    start: Annotated[
        str,
        must_match(_TIME, 'is not a time of day; write for example "03:00"'),
        Field(examples=["03:00"]),
    ] = "09:00"
    """Begin, in UTC, of the four hours a day for upgrades."""
    exclusions: Annotated[
        dict[Name, Exclusion], Field(examples=[{"training": {"start": "2026-12-18T00:00:00Z"}}])
    ] = {}
    """Times without upgrades, by name."""


class ClusterSettings(Settings):
    """GKE cluster."""

    name: Annotated[Name | None, Field(examples=["research"])] = None
    """Name of the cluster, with which the names of its networks begin. Default: the stack's
    name."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = "REGULAR"
    """GKE release channel; `EXTENDED` supports a minor version for longer, at a price."""
    version: Annotated[str, Field(pattern=f"^{GKE_VERSION}$", examples=["1.35"])] | None = None
    """Minimum version of the control plane. Default: the channel's."""
    maintenance: Annotated[Maintenance | None, Field(examples=[{"start": "03:00"}])] = None
    """Times of automatic upgrades. Default: as it is."""
    deletion_protection: bool = True
    """Refuse to delete the cluster until this is set to false and applied."""
    private_nodes: bool = True
    """Give nodes no public addresses; they reach the internet by Cloud NAT (`network.nat`)."""
    private_endpoint: bool = False
    """Give the control plane no public address either: whoever runs Pulumi must be in the
    network."""
    dns_endpoint: bool | None = None
    """Let whoever has `container.clusters.connect` reach the control plane by GKE's DNS name, which
    kubeconfigs then have. Default: as it is."""
    ip_endpoint: bool | None = None
    """Let its addresses answer too; false needs `dnsEndpoint: true`. Default: as it is."""
    authorized_networks: Annotated[
        dict[Name, Cidr], Field(examples=[{"office": "203.0.113.0/24"}])
    ] = {}
    """Ranges from which the control plane can be reached, by name; `all: 0.0.0.0/0` opens it.
    Default: as it is, but a change of an endpoint clears ranges that were set elsewhere since the
    last `pulumi refresh`; a new cluster is open, with credentials."""
    security_group: Annotated[
        SecurityGroup | None, Field(examples=["gke-security-groups@example.com"])
    ] = None
    """Google group whose member groups Kubernetes knows; without it, `groups` under `access` give
    nobody access. A group that is in force stays."""
    secrets_encryption_key: Annotated[
        KmsKey | None,
        Field(
            examples=[
                "projects/your-project/locations/us-central1/keyRings/berth/cryptoKeys/secrets"
            ]
        ),
    ] = None
    """Key of Cloud KMS, in the cluster's region, that also encrypts Kubernetes' Secrets; GKE's
    service agent needs the right to use it. A key that is in force stays."""
    multi_networking: bool | None = None
    """GKE multi-networking. Default: on where a pool has `rdma: networks`."""
    logging: Annotated[
        list[Literal["SYSTEM", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"]],
        Field(examples=[["SYSTEM"]]),
    ] = ["SYSTEM", "WORKLOADS"]
    """Logs that go to Cloud Logging."""
    managed_prometheus: bool = True
    """Google Cloud Managed Service for Prometheus, with the metrics that GKE collects by it by
    default: of the objects' states, the kubelet and the containers."""
    managed_dcgm: bool = True
    """GPU metrics by GKE's managed DCGM exporter."""
    cost_allocation: bool = True
    """Costs by namespace and label in the export of Cloud Billing (GKE cost allocation)."""
    gcs_fuse: Annotated[bool | None, Field(examples=[True])] = None
    """GKE's Cloud Storage FUSE driver. Default: on if something in the settings mounts a bucket;
    write true for engineers' own stacks."""
    filestore: Annotated[bool | None, Field(examples=[True])] = None
    """GKE's Filestore driver and StorageClasses in the cluster's network. Default: on if something
    in the settings mounts Filestore; write true for engineers' own stacks."""
    secret_sync: Annotated[bool | None, Field(examples=[True])] = None
    """GKE's synchronization with Secret Manager. Default: on if something in the settings has a
    `secretManager`; write true for engineers' own stacks."""
    node_service_account: Annotated[
        NodeAccount | None, Field(examples=["own", "nodes@your-project.iam.gserviceaccount.com"])
    ] = None
    """Service account of the nodes. `own`: berth creates one with the roles that nodes need.
    Default: Compute Engine's, which can do more."""
    arguments: Annotated[
        ClusterPatch,
        Field(examples=[{"dnsConfig": {"clusterDns": "CLOUD_DNS"}}, {"defaultMaxPodsPerNode": 64}]),
    ] = {}
    """Fields of the cluster for which there is no setting, as Pulumi's `gcp.container.Cluster` has
    them: see `berth docs gke#fields-without-a-setting`. Those of its `nodeConfig` are of its first
    pool, which lives for a minute."""
    existing: Annotated[
        ExistingCluster | None, Field(examples=[{"kubeconfig": "~/.kube/config"}])
    ] = None
    """Use an existing cluster; no other key is given then."""
