"""Settings of an environment's VPC networks: new ones cut from one CIDR, or existing ones."""

from typing import Annotated

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import IpRange, NonEmpty, ProjectId


class ExistingSubnetwork(Settings):
    """Network and one subnetwork of it, by name."""

    network: Annotated[NonEmpty, Field(examples=["shared-gvnic"])]
    """Name of the network."""
    subnetwork: Annotated[NonEmpty, Field(examples=["shared-gvnic-nodes"])]
    """Name of the subnetwork, in the environment's region."""


class ExistingRdmaNetwork(Settings):
    """RDMA network (profile ZONE-vpc-roce) with one subnetwork for each RDMA NIC, by name."""

    network: Annotated[NonEmpty, Field(examples=["shared-rdma"])]
    """Name of the network."""
    subnetworks: Annotated[list[NonEmpty], Field(examples=[[f"shared-rdma-{number}" for number in range(8)]])]
    """Names of the subnetworks, one for each RDMA NIC."""


class ExistingNetwork(Settings):
    """Existing networks, which berth uses and neither changes nor deletes."""

    project: Annotated[ProjectId | None, Field(examples=["network-host"])] = None
    """Host project of a Shared VPC. Default: the environment's project."""
    network: Annotated[NonEmpty, Field(examples=["shared"])]
    """Name of the VPC network."""
    subnetwork: Annotated[NonEmpty, Field(examples=["shared-nodes"])]
    """Name of the network's subnetwork in the environment's region."""
    pod_range: Annotated[NonEmpty, Field(examples=["berth-pods"])] = "pods"
    """Name of the subnetwork's secondary range for pods."""
    service_range: Annotated[NonEmpty, Field(examples=["berth-services"])] = "services"
    """Name of the subnetwork's secondary range for Services."""
    gvnic: Annotated[
        ExistingSubnetwork | None, Field(examples=[{"network": "shared-gvnic", "subnetwork": "shared-gvnic-nodes"}])
    ] = None
    """Second network of nodes with RDMA NICs; needed where a pool has `rdma: networks`."""
    rdma: Annotated[
        ExistingRdmaNetwork | None,
        Field(examples=[{"network": "shared-rdma", "subnetworks": [f"shared-rdma-{number}" for number in range(8)]}]),
    ] = None
    """RDMA network; needed where a pool has `rdma: networks`."""


class NetworkSettings(Settings):
    """VPC networks of the cluster. Ranges that are not given are cut from `cidr`; none overlap."""

    cidr: Annotated[IpRange, Field(examples=["10.64.0.0/13"])] = "10.0.0.0/13"
    """Range from which those of nodes, pods, Services, second and RDMA networks are cut; /8 to
    /20."""
    node_range: Annotated[IpRange | None, Field(examples=["172.16.0.0/20"])] = None
    """Addresses of nodes. Default: the first 1/128 of `cidr`."""
    pod_range: Annotated[IpRange | None, Field(examples=["172.20.0.0/14"])] = None
    """Addresses of pods. Default: the second half of `cidr`."""
    service_range: Annotated[IpRange | None, Field(examples=["172.16.16.0/20"])] = None
    """Addresses of Services. Default: the third 1/128 of `cidr`."""
    gvnic_range: Annotated[IpRange | None, Field(examples=["192.168.0.0/18"])] = None
    """Second network of nodes with RDMA NICs (`rdma: networks`). Default: the second 1/32 of
    `cidr`."""
    rdma_range: Annotated[IpRange | None, Field(examples=["192.168.128.0/17"])] = None
    """RDMA network, cut into one subnetwork for each NIC (`rdma: networks`). Default: the third
    1/32 of `cidr`."""
    mtu: Annotated[int, Field(examples=[1460], ge=1300, le=8896, strict=True)] = 8896
    """Largest packet in bytes. 8896 is Google Cloud's maximum and the default of RDMA networks
    (https://docs.cloud.google.com/vpc/docs/rdma-network-profiles)."""
    nat: bool = True
    """Let private nodes reach the internet, for images and packages, by Cloud NAT."""
    existing: Annotated[
        ExistingNetwork | None, Field(examples=[{"network": "shared", "subnetwork": "shared-nodes"}])
    ] = None
    """Use existing networks; no other key is given then."""
