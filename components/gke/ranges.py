"""Address ranges of an environment's networks, cut from one CIDR."""

import ipaddress
from dataclasses import dataclass

from berth.components.gke.network_settings import NetworkSettings
from berth.components.hardware.machines import RDMA_NICS

WIDEST_SERVICES = 16
"""GKE's widest range of Services is a /16, the narrowest a /28 (GKE: "Creating a VPC-native
cluster", sizing of ranges,
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing)."""


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
    """Return the ranges of the settings, and cut the others from `cidr`.

    With 10.0.0.0/13: nodes 10.0.0.0/20, Services 10.0.32.0/20, second network 10.0.64.0/18, RDMA
    10.0.128.0/18 (eight /21), pods 10.4.0.0/14. The layout is that of Google's A4 recipe
    (GoogleCloudPlatform/cluster-toolkit, examples/gke-a4), in one block.
    """
    whole = ipaddress.IPv4Network(network.cidr)

    def part(bits: int, index: int, widest: int = 0) -> str:
        size = whole.num_addresses >> bits
        return str(
            ipaddress.IPv4Network((int(whole.network_address) + index * size, max(whole.prefixlen + bits, widest)))
        )

    return Ranges(
        nodes=network.node_range or part(7, 0),
        pods=network.pod_range or part(1, 1),
        services=network.service_range or part(7, 2, WIDEST_SERVICES),
        gvnic=network.gvnic_range or part(5, 1),
        rdma=network.rdma_range or part(5, 2),
    )
