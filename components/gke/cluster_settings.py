"""The GKE cluster of an environment, or one that is there already."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import Cidr, Name, NonEmpty, ServiceAccount

GKE_VERSION = r"\d+\.\d+(\.\d+)?(-gke\.\d+)?"


class ExistingCluster(Settings):
    """A cluster that is there already: berth makes no network, cluster or node pool, and installs on it.

    The environment's `pools` then say what it has. Nodes are told by the label cloud.google.com/gke-nodepool.
    """

    kubeconfig: NonEmpty
    """File of the kubeconfig, from the project's folder on; `~` is the home folder."""
    context: NonEmpty | None = None
    """Context in it. Default: its current one."""


class ClusterSettings(Settings):
    """The GKE cluster."""

    name: Name | None = None
    """Name of the cluster and of what belongs to it. Default: the stack's name."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE"] = "REGULAR"
    """GKE release channel."""
    version: Annotated[str, Field(pattern=f"^{GKE_VERSION}$", examples=["1.35"])] | None = None
    """Minimum version of the control plane. Default: the channel's."""
    deletion_protection: bool = True
    """Refuse to delete the cluster until this is set to false and applied."""
    private_nodes: bool = True
    """Nodes have no public addresses; they reach the internet by Cloud NAT (`network.nat`)."""
    private_endpoint: bool = False
    """The control plane has no public address either: whoever runs Pulumi must be in the network."""
    authorized_networks: dict[Name, Cidr] = {}
    """From where the control plane can be reached, by a name for each range. Default: a new
    cluster can be reached from everywhere, with credentials; a list that is in force stays. `all: 0.0.0.0/0` opens it again."""
    multi_networking: bool | None = None
    """GKE multi-networking. Default: where a pool has `rdma: networks`."""
    logging: list[Literal["SYSTEM", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"]] = [
        "SYSTEM",
        "WORKLOADS",
    ]
    """What goes to Cloud Logging."""
    managed_prometheus: bool = True
    """Google Cloud Managed Service for Prometheus."""
    managed_dcgm: bool = True
    """GPU metrics by GKE's managed DCGM exporter."""
    node_service_account: ServiceAccount | None = None
    """The service account that nodes run as. Default: Compute Engine's, which can do more than nodes need."""
    existing: ExistingCluster | None = None
    """Use a cluster that is there; nothing else is given then."""
