"""Rules of a new cluster's networks: existing ones, further ones for RDMA, the way out."""

from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import written_keys
from berth.components.core.words import counted, is_or_are, names_in_words
from berth.components.gke.network_settings import NetworkSettings
from berth.components.gke.settings import GkeSettings
from berth.components.hardware.machines import RDMA_NICS

CREATED_CLUSTER_NETWORKS = Rules[GkeSettings](GkeSettings)
"""Rules of the networks of a cluster that berth creates."""

_NETWORK_KEYS = [field.alias or name for name, field in NetworkSettings.model_fields.items()]


@CREATED_CLUSTER_NETWORKS.problem(*(f"network.{key}" for key in _NETWORK_KEYS))
def settings_beside_existing_networks(environment: GkeSettings) -> Iterator[Breach]:
    """Existing networks are used as they are."""
    beside = [key for key in written_keys(environment.network) if key != "existing"]
    if environment.network.existing and beside:
        yield Breach(
            "network.existing uses networks that are there, which berth does not change, so"
            f" {names_in_words(beside, 'and')} would be ignored; take one or the other out",
            at=("network", beside[0]),
        )


@CREATED_CLUSTER_NETWORKS.problem("network.existing")
def existing_networks_without_rdma(environment: GkeSettings) -> str | None:
    """Nodes of pools with `rdma: networks` are in a second network and in an RDMA network."""
    existing = environment.network.existing
    pools = environment.pools_with_rdma("networks")
    if not existing or not pools:
        return None
    lacking = [key for key in ("gvnic", "rdma") if getattr(existing, key) is None]
    if not lacking:
        return None
    users = f"pool {pools[0]!r}" if len(pools) == 1 else f"each of the pools {', '.join(pools)}"
    return (
        f"lacks {names_in_words(lacking, 'and')}, which {users} with `rdma: networks` needs: name"
        " the second network of its nodes (gvnic) and the RDMA network with its subnetworks (rdma)"
    )


@CREATED_CLUSTER_NETWORKS.problem("network.existing.rdma.subnetworks")
def other_number_of_rdma_subnetworks(environment: GkeSettings) -> str | None:
    """Each RDMA NIC of a node is in a subnetwork of its own."""
    existing = environment.network.existing
    if not existing or not existing.rdma:
        return None
    count = len(set(existing.rdma.subnetworks))
    if count == RDMA_NICS:
        return None
    return (
        f"{counted(count, 'subnetwork')} {is_or_are(count)} named, but a node has {RDMA_NICS} RDMA"
        f" NICs, each in a subnetwork of its own; name {RDMA_NICS}"
    )


@CREATED_CLUSTER_NETWORKS.problem("network.gvnicRange", "network.rdmaRange", rests_on=["pools"])
def rdma_ranges_without_rdma(environment: GkeSettings) -> Iterator[Breach]:
    """Only pools with `rdma: networks` need the second network and the RDMA network."""
    network = environment.network
    if network.existing or environment.pools_with_rdma("networks"):
        return
    for key, cidr in (("gvnicRange", network.gvnic_range), ("rdmaRange", network.rdma_range)):
        if cidr:
            yield Breach(
                "would be ignored, since no pool has `rdma: networks`; take it out",
                at=("network", key),
            )


@CREATED_CLUSTER_NETWORKS.problem("network.nat")
def nat_for_public_nodes(environment: GkeSettings) -> str | None:
    """Nodes with public addresses reach the internet without Cloud NAT."""
    network = environment.network
    written_nat = "nat" in network.model_fields_set and network.nat
    if network.existing or not written_nat or environment.cluster.private_nodes:
        return None
    return (
        "nodes have public addresses (cluster.privateNodes: false) and don't use Cloud NAT; take"
        " this line out"
    )
