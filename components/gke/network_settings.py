"""Settings of an environment's VPC networks: new ones cut from one CIDR, or existing ones."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import IpRange, NonEmpty, ProjectId


class ExistingSubnetwork(Settings):
    """Network and one subnetwork of it, by name."""

    network: NonEmpty
    """Name of the network."""
    subnetwork: NonEmpty
    """Name of the subnetwork, in the environment's region."""


class ExistingRdmaNetwork(Settings):
    """RDMA network (profile ZONE-vpc-roce) with one subnetwork for each RDMA NIC, by name."""

    network: NonEmpty
    """Name of the network."""
    subnetworks: list[NonEmpty]
    """Names of the subnetworks, one for each RDMA NIC."""


class ExistingNetwork(Settings):
    """Existing networks, which berth uses and neither changes nor deletes."""

    project: ProjectId | None = None
    """Host project of a Shared VPC. Default: the environment's project."""
    network: NonEmpty
    """Name of the VPC network."""
    subnetwork: NonEmpty
    """Name of the network's subnetwork in the environment's region."""
    pod_range: NonEmpty = "pods"
    """Name of the subnetwork's secondary range for pods."""
    service_range: NonEmpty = "services"
    """Name of the subnetwork's secondary range for Services."""
    gvnic: ExistingSubnetwork | None = None
    """Second network of nodes with RDMA NICs; needed where a pool has `rdma: networks`."""
    rdma: ExistingRdmaNetwork | None = None
    """RDMA network; needed where a pool has `rdma: networks`."""


class NetworkSettings(Settings):
    """VPC networks of the cluster. Ranges that are not given are cut from `cidr`; none overlap."""

    cidr: IpRange = "10.0.0.0/13"
    """Range from which those of nodes, pods, Services, second and RDMA networks are cut; /8 to
    /20."""
    node_range: IpRange | None = None
    """Addresses of nodes. Default: the first 1/128 of `cidr`."""
    pod_range: IpRange | None = None
    """Addresses of pods. Default: the second half of `cidr`."""
    service_range: IpRange | None = None
    """Addresses of Services. Default: the third 1/128 of `cidr`."""
    gvnic_range: IpRange | None = None
    """Second network of nodes with RDMA NICs (`rdma: networks`). Default: the second 1/32 of
    `cidr`."""
    rdma_range: IpRange | None = None
    """RDMA network, cut into one subnetwork for each NIC (`rdma: networks`). Default: the third
    1/32 of `cidr`."""
    mtu: Annotated[int, Field(ge=1300, le=8896, strict=True)] = 8896
    """Largest packet in bytes. 8896 is Google Cloud's maximum and the default of RDMA networks
    (https://docs.cloud.google.com/vpc/docs/rdma-network-profiles)."""
    nat: bool = True
    """Let private nodes reach the internet, for images and packages, by Cloud NAT."""
    existing: ExistingNetwork | None = None
    """Use existing networks; no other key is given then."""
