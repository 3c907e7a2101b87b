"""Rules of a cluster that berth creates: its version, who reaches it, its logs."""

import ipaddress
from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.core.types import location_of_key
from berth.components.gke.settings import GkeSettings
from berth.components.gke.versions import why_too_old

CREATED_CLUSTERS = Rules[GkeSettings](GkeSettings)
"""Rules of clusters that berth creates."""

CLUSTERS = Rules[GkeSettings](GkeSettings)
"""Rules of every cluster."""

_EVERYWHERE = "0.0.0.0/0"


@CREATED_CLUSTERS.problem("cluster.version")
def version_without_features(environment: GkeSettings) -> str | None:
    """Each feature of GKE needs a version (features.yaml, machines.yaml)."""
    version = environment.cluster.version
    return why_too_old(environment, version) if version else None


@CREATED_CLUSTERS.problem("cluster.logging")
def logs_without_those_of_the_system(environment: GkeSettings) -> str | None:
    """GKE collects other logs only beside the system's."""
    logs = environment.cluster.logging
    if logs and "SYSTEM" not in logs:
        return (
            f"{', '.join(logs)} without SYSTEM: GKE collects other logs only beside the"
            " system's; add SYSTEM, or write []"
        )
    return None


@CREATED_CLUSTERS.problem("cluster.secretsEncryptionKey", rests_on=["zone", "region"])
def key_in_another_region(environment: GkeSettings) -> str | None:
    """A key of Cloud KMS is in the region of the cluster whose Secrets it encrypts."""
    key = environment.cluster.secrets_encryption_key
    if not key or not environment.location:
        return None
    key_region = location_of_key(key)
    if key_region == environment.in_region:
        return None
    return (
        f"the key is in {key_region}, and the cluster in {environment.location}: Secrets could not"
        f" be read while either is away; name a key in {environment.in_region}"
    )


@CREATED_CLUSTERS.problem("cluster.privateEndpoint")
def private_endpoint_with_public_nodes(environment: GkeSettings) -> str | None:
    """Nodes with public addresses reach the control plane by its public address."""
    if environment.cluster.private_endpoint and not environment.cluster.private_nodes:
        return (
            "nodes with public addresses (privateNodes: false) reach the control plane by its"
            " public one; take `privateNodes: false` out, or this line"
        )
    return None


@CREATED_CLUSTERS.problem("cluster.ipEndpoint")
def control_plane_without_an_endpoint(environment: GkeSettings) -> str | None:
    """A control plane has addresses, a DNS name, or both."""
    if environment.cluster.ip_endpoint is False and not environment.cluster.dns_endpoint:
        return (
            "nobody reaches a control plane that has neither addresses nor a DNS name; write"
            " `dnsEndpoint: true` too, or take this line out"
        )
    return None


@CREATED_CLUSTERS.problem("cluster.authorizedNetworks", rests_on=["environment.cluster.ipEndpoint"])
def authorized_networks_without_addresses(environment: GkeSettings) -> str | None:
    """Authorized networks are those that reach the control plane's addresses."""
    if environment.cluster.ip_endpoint is False and environment.cluster.authorized_networks:
        return (
            "holds for the control plane's addresses, which `ipEndpoint: false` takes away: IAM"
            " alone decides who reaches its DNS name; take one of the two out"
        )
    return None


@CREATED_CLUSTERS.problem("cluster.authorizedNetworks.*")
def public_network_of_a_private_endpoint(environment: GkeSettings) -> Iterator[Breach]:
    """GKE refuses public networks for a control plane without a public address."""
    if not environment.cluster.private_endpoint:
        return
    for name, network in environment.cluster.authorized_networks.items():
        # Python calls the whole internet private, since both its first and its last address are.
        if network != _EVERYWHERE and ipaddress.IPv4Network(network).is_private:
            continue
        yield Breach(
            f"{network} is public, and from there nobody reaches a control plane without a public"
            " address (privateEndpoint: true), which GKE refuses; name private networks, or take"
            " `privateEndpoint` out",
            at=("cluster", "authorizedNetworks", name),
        )


@CREATED_CLUSTERS.problem("cluster.managedPrometheus", rests_on=["environment.cluster.managedDcgm"])
def gpu_metrics_without_prometheus(environment: GkeSettings) -> str | None:
    """GKE's managed DCGM exporter needs managed collection.

    Source: "Collect and view DCGM metrics"
    (https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dcgm-metrics).
    """
    if environment.cluster.managed_dcgm and not environment.cluster.managed_prometheus:
        return (
            "GKE's managed DCGM exporter is read by Managed Service for Prometheus only; take this"
            " line out, or write `managedDcgm: false` too"
        )
    return None


@CREATED_CLUSTERS.problem("cluster.multiNetworking")
def rdma_networks_without_multi_networking(environment: GkeSettings) -> str | None:
    """Nodes have several networks only in a cluster with multi-networking."""
    on_networks = environment.pools_with_rdma("networks")
    if on_networks and environment.cluster.multi_networking is False:
        return (
            f"pool {on_networks[0]!r} has `rdma: networks`, and nodes have further networks only"
            " in a cluster with multi-networking; take this line out"
        )
    return None


@CLUSTERS.warning("cluster.authorizedNetworks.*")
def control_plane_open_to_the_internet(environment: GkeSettings) -> Iterator[Breach]:
    """The whole internet as an authorized network authorizes everybody."""
    for name, network in environment.cluster.authorized_networks.items():
        if network == _EVERYWHERE:
            yield Breach(
                "lets the whole internet reach the control plane, as a new cluster without a list"
                " does; name the networks of your office and your CI",
                at=("cluster", "authorizedNetworks", name),
            )
