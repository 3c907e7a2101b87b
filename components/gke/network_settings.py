"""Settings of an environment's VPC networks: new ones cut from one CIDR, or existing ones."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from berth.components.core.settings import Settings
from berth.components.core.types import IpRange, NonEmpty, ProjectId
from berth.components.hardware.machines import RDMA_NICS

WIDEST_CIDR = 8
NARROWEST_CIDR = 20
WIDEST_SERVICES = 16
"""GKE's widest range of Services is a /16, the narrowest a /28 (GKE: "Creating a VPC-native
cluster", sizing of ranges,
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing)."""


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
    subnetworks: Annotated[
        list[NonEmpty], Field(examples=[[f"shared-rdma-{number}" for number in range(8)]])
    ]
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
        ExistingSubnetwork | None,
        Field(examples=[{"network": "shared-gvnic", "subnetwork": "shared-gvnic-nodes"}]),
    ] = None
    """Second network of nodes with RDMA NICs; needed where a pool has `rdma: networks`."""
    rdma: Annotated[
        ExistingRdmaNetwork | None,
        Field(
            examples=[
                {
                    "network": "shared-rdma",
                    "subnetworks": [f"shared-rdma-{number}" for number in range(8)],
                }
            ]
        ),
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
        ExistingNetwork | None,
        Field(examples=[{"network": "shared", "subnetwork": "shared-nodes"}]),
    ] = None
    """Use existing networks; no other key is given then."""

    @property
    def can_be_cut(self) -> bool:
        """Whether `cidr` has a size from which berth cuts ranges."""
        return WIDEST_CIDR <= ipaddress.IPv4Network(self.cidr).prefixlen <= NARROWEST_CIDR


@dataclass(frozen=True)
class Ranges:
    """Ranges in CIDR notation; `gvnic` and `rdma` are further networks of nodes with RDMA NICs."""

    nodes: str
    pods: str
    services: str
    gvnic: str
    rdma: str

    @property
    def rdma_subnetworks(self) -> tuple[str, ...]:
        """Ranges of the RDMA network's subnetworks, one for each RDMA NIC of a node."""
        whole = ipaddress.IPv4Network(self.rdma)
        bits = (RDMA_NICS - 1).bit_length()
        return tuple(map(str, whole.subnets(prefixlen_diff=bits)))


def ranges_of(network: NetworkSettings) -> Ranges:
    """Return the ranges of the settings, and cut the others from `cidr`, which can be cut.

    With 10.0.0.0/13: nodes 10.0.0.0/20, Services 10.0.32.0/20, second network 10.0.64.0/18, RDMA
    10.0.128.0/18 (eight /21), pods 10.4.0.0/14. The layout is that of Google's A4 recipe
    (GoogleCloudPlatform/cluster-toolkit, examples/gke-a4), in one block.
    """
    whole = ipaddress.IPv4Network(network.cidr)

    def part(bits: int, index: int, widest: int = 0) -> str:
        size = whole.num_addresses >> bits
        return str(
            ipaddress.IPv4Network(
                (int(whole.network_address) + index * size, max(whole.prefixlen + bits, widest))
            )
        )

    return Ranges(
        nodes=network.node_range or part(7, 0),
        pods=network.pod_range or part(1, 1),
        services=network.service_range or part(7, 2, WIDEST_SERVICES),
        gvnic=network.gvnic_range or part(5, 1),
        rdma=network.rdma_range or part(5, 2),
    )
