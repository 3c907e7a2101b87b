"""Addresses that the nodes of an environment's pools take in subnetworks and secondary ranges.

A subnetwork loses four addresses to Google Cloud ("Subnets",
https://docs.cloud.google.com/vpc/docs/subnets).
"""

from dataclasses import dataclass
from ipaddress import IPv4Network

from berth.components.core.manifest import value_at
from berth.components.gke.network_settings import WIDEST_SERVICES
from berth.components.gke.pool_settings import PoolSettings
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.allocatable import DEFAULT_MAX_PODS

_RESERVED_ADDRESSES = 4
_SMALLEST_SERVICES = 28
_BITS = 32

_POLICY_OF_PODS = (
    "additionalIpRangesConfigs",
    "additionalPodRangesConfig",
    "podCidrOverprovisionConfig",
)
"""Fields of a cluster's `ipAllocationPolicy` by which pods take addresses in another way."""


@dataclass(frozen=True)
class AddressNeed:
    """Addresses that nodes take in each subnetwork of a range.

    Attributes:
        nodes: number of nodes.
        addresses: number of addresses.
        reserved: addresses of a subnetwork that Google Cloud keeps.
    """

    nodes: int
    addresses: int
    reserved: int = _RESERVED_ADDRESSES

    @property
    def words(self) -> str:
        """Sentence about the need, which begins in lowercase."""
        return (
            f"the pools can have {self.nodes:,} nodes, those of an upgrade included, which need"
            f" {self.addresses:,}"
        )

    def room_in(self, network: IPv4Network, parts: int = 1) -> int:
        """Return the addresses for nodes in each of the parts that a range is cut into."""
        return network.num_addresses // parts - self.reserved

    def prefix(self, parts: int = 1) -> int:
        """Return the length of the prefix of the smallest range with room, for so many parts."""
        return _BITS - ((self.addresses + self.reserved) * parts - 1).bit_length()


def size_that_gke_refuses(services: IPv4Network | None) -> str | None:
    """Return what is wrong with the size of a range of Services; None for nothing."""
    if services is None or WIDEST_SERVICES <= services.prefixlen <= _SMALLEST_SERVICES:
        return None
    return (
        f"{services} is a /{services.prefixlen}; GKE takes /{WIDEST_SERVICES} to"
        f" /{_SMALLEST_SERVICES} for Services, for example a /20"
    )


def address_needs(environment: GkeSettings) -> dict[str, AddressNeed]:
    """Return the addresses that the pools' nodes take, by the key of the range."""
    all_nodes = 0
    rdma_nodes = 0
    pod_addresses = 0
    for pool in environment.pools.values():
        nodes = pool.nodes_at_most + pool.max_surge
        all_nodes += nodes
        if not _has_further_pod_ranges(environment, pool):
            pod_addresses += nodes * _pod_addresses(pool.max_pods_per_node or DEFAULT_MAX_PODS)
        if pool.rdma == "networks":
            rdma_nodes += nodes
    return {
        "nodeRange": AddressNeed(all_nodes, all_nodes),
        "podRange": AddressNeed(all_nodes, pod_addresses, reserved=0),
        "gvnicRange": AddressNeed(rdma_nodes, rdma_nodes),
        "rdmaRange": AddressNeed(rdma_nodes, rdma_nodes),
    }


def _has_further_pod_ranges(environment: GkeSettings, pool: PoolSettings) -> bool:
    """Return whether arguments give pods of a pool ranges beside the cluster's, or other blocks."""
    of_cluster = value_at(environment.cluster.arguments, "ipAllocationPolicy") or {}
    of_pool = value_at(pool.arguments, "networkConfig") or {}
    return any(of_cluster.get(key) for key in _POLICY_OF_PODS) or any(
        of_pool.get(key) for key in ("podRange", "createPodRange", "podCidrOverprovisionConfig")
    )


def _pod_addresses(max_pods: int) -> int:
    """Return the addresses of a node's pods: a block for twice as many pods as it can have.

    For 110 pods the block has 256 addresses ("Configure maximum Pods per node",
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr).
    """
    return 1 << (2 * max_pods - 1).bit_length()
