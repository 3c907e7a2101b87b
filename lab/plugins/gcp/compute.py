"""Networks, subnetworks, firewalls, routers and Cloud NAT of the simulated cloud.

In the API a NAT is a part of its router; here each has a record, and a router stays while it has
one.

Answers to (read): google-beta/services/compute/resource_compute_network.go,
    resource_compute_subnetwork.go, resource_compute_firewall.go, resource_compute_router.go and
    resource_compute_router_nat.go of https://github.com/hashicorp/terraform-provider-google-beta
    (fields, CustomizeDiff).
Answers to (read): https://docs.cloud.google.com/vpc/docs/rdma-network-profiles (RDMA networks have
    no firewall rules and no routers), and
    https://docs.cloud.google.com/nat/docs/ports-and-addresses (dynamic port allocation excludes
    endpoint-independent mapping).
Answers to (believed): a router with a NAT cannot be deleted, and the texts of refusals. Such calls
    would settle them.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request, in_use, invalid_value, not_found
from berth.lab.plugins.gcp.locations import ZONES
from berth.lab.plugins.gcp.references import PROFILE, find_network, further_networks, is_reference, rdma_zone
from berth.lab.plugins.gcp.resource import Cloud, ResourceType, compute_link, last_part, number_of
from berth.lab.plugins.provider import Kind

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record


class Network(ResourceType):
    """`gcp:compute/network:Network`."""

    token = "gcp:compute/network:Network"  # noqa: S105 (a type token)
    title = "Network"
    permission = "compute.networks"
    path = "projects/{project}/global/networks/{name}"
    computed = ("selfLink", "numericId", "networkId", "gatewayIpv4")

    def check(self, cloud: Cloud, record: Record) -> None:
        del cloud
        profile = last_part(record.inputs.get("networkProfile") or "")
        match = PROFILE.fullmatch(profile)
        if profile and (match is None or match["zone"] not in ZONES):
            raise not_found(f"projects/{record.project}/global/networkProfiles/{profile}")
        if record.inputs.get("autoCreateSubnetworks", True):
            raise bad_request(
                "the simulated cloud has no auto mode networks: set autoCreateSubnetworks to false and make the "
                "subnetworks"
            )

    def delete(self, cloud: Cloud, record: Record) -> None:
        for collection in ("subnetworks", "firewalls", "routers", "clusters"):
            for user in cloud.store.list(collection):
                if is_reference(user.inputs.get("network", ""), user.project, record):
                    raise in_use("network", record.id, user.id)
        _refuse_in_pools(cloud, record, "network")

    def outputs(self, record: Record) -> dict[str, Any]:
        return {
            "autoCreateSubnetworks": True,
            "deleteDefaultRoutesOnCreate": False,
            "mtu": 8896 if record.inputs.get("networkProfile") else 1460,
            "routingMode": "REGIONAL",
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
            **record.inputs,
            "gatewayIpv4": "",
            "numericId": number_of(record.id),
            "networkId": number_of(record.id),
            "selfLink": compute_link(record.id),
        }


def _refuse_in_pools(cloud: Cloud, record: Record, key: str) -> None:
    """Refuse to delete a network or subnetwork that is a further one of a pool's nodes."""
    for pool in cloud.store.list("nodePools"):
        if any(is_reference(extra.get(key, ""), pool.project, record) for extra in further_networks(pool)):
            raise in_use(key, record.id, pool.id)


class Subnetwork(ResourceType):
    """`gcp:compute/subnetwork:Subnetwork`."""

    token = "gcp:compute/subnetwork:Subnetwork"  # noqa: S105 (a type token)
    title = "Subnetwork"
    permission = "compute.subnetworks"
    path = "projects/{project}/regions/{region}/subnetworks/{name}"
    located = "region"
    computed = ("selfLink", "gatewayAddress", "creationTimestamp", "subnetworkId", "fingerprint")

    def also_replaces(self, state: dict[str, Any], new: dict[str, Any]) -> dict[str, Kind]:
        """A range can grow in place, and not shrink or move."""
        try:
            before, after = (_range("ipCidrRange", values["ipCidrRange"]) for values in (state, new))
        except (GoogleApiError, KeyError):
            return {}
        return {} if before.subnet_of(after) else {"ipCidrRange": Kind.UPDATE_REPLACE}

    def check(self, cloud: Cloud, record: Record) -> None:
        """Refuse ranges that overlap another one of the network, or of the subnetwork itself."""
        network = find_network(cloud, record.inputs["network"], record.project)
        zone = rdma_zone(network)
        if zone and record.inputs["region"] != ZONES[zone]:
            raise bad_request(
                f"Invalid value for field 'resource.region': '{record.inputs['region']}'. Subnetworks of the network "
                f"'{network.id}' must be in the region of its network profile's zone {zone}"
            )
        others = [
            other
            for other in cloud.store.list("subnetworks", record.project)
            if other.id != record.id and last_part(other.inputs["network"]) == network.name
        ]
        taken = [(cidr, other) for other in others for cidr in _ranges(other)]
        for cidr in _ranges(record):
            for used, other in taken:
                if cidr.overlaps(used):
                    text = f"{cidr} conflicts with existing subnetwork '{other.name}' in region"
                    raise GoogleApiError(400, f"Invalid IPCidrRange: {text} '{other.inputs['region']}'", "invalid")
            taken.append((cidr, record))

    def delete(self, cloud: Cloud, record: Record) -> None:
        for user in cloud.store.list("clusters"):
            if is_reference(user.inputs.get("subnetwork", ""), user.project, record):
                raise in_use("subnetwork", record.id, user.id)
        _refuse_in_pools(cloud, record, "subnetwork")

    def outputs(self, record: Record) -> dict[str, Any]:
        return {
            "privateIpGoogleAccess": False,
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            **record.inputs,
            "creationTimestamp": record.state["created"],
            "fingerprint": number_of(repr(sorted(record.inputs.items()))),
            "gatewayAddress": str(_ranges(record)[0][1]),
            "subnetworkId": int(number_of(record.id)) % 10**15,
            "selfLink": compute_link(record.id),
        }


def _range(field: str, value: object) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(str(value))
    except ValueError:
        raise invalid_value(field, value, "Must be a CIDR address range that is contained in a valid subnet") from None


def _ranges(record: Record) -> list[ipaddress.IPv4Network]:
    """Return the ranges of a subnetwork, its primary one first."""
    secondary = record.inputs.get("secondaryIpRanges") or []
    cidrs = [record.inputs.get("ipCidrRange"), *(item["ipCidrRange"] for item in secondary)]
    return [_range("resource.ipCidrRange", cidr) for cidr in cidrs]


def _refuse_rdma(cloud: Cloud, record: Record, what: str) -> None:
    """Refuse what an RDMA network does not have."""
    network = find_network(cloud, record.inputs["network"], record.project)
    if rdma_zone(network):
        profile = last_part(network.inputs["networkProfile"])
        raise bad_request(
            f"The network '{network.id}' has the network profile '{profile}', which does not allow {what}"
        )


class Firewall(ResourceType):
    """`gcp:compute/firewall:Firewall`."""

    token = "gcp:compute/firewall:Firewall"  # noqa: S105 (a type token)
    title = "Firewall"
    permission = "compute.firewalls"
    path = "projects/{project}/global/firewalls/{name}"
    computed = ("selfLink", "creationTimestamp")

    def check(self, cloud: Cloud, record: Record) -> None:
        _refuse_rdma(cloud, record, "firewall rules: its traffic is always allowed")

    def outputs(self, record: Record) -> dict[str, Any]:
        return {
            "direction": "INGRESS",
            "priority": 1000,
            "destinationRanges": [],
            "sourceRanges": [],
            **record.inputs,
            "creationTimestamp": record.state["created"],
            "selfLink": compute_link(record.id),
        }


class Router(ResourceType):
    """`gcp:compute/router:Router`."""

    token = "gcp:compute/router:Router"  # noqa: S105 (a type token)
    title = "Router"
    permission = "compute.routers"
    path = "projects/{project}/regions/{region}/routers/{name}"
    located = "region"
    computed = ("selfLink", "creationTimestamp")

    def check(self, cloud: Cloud, record: Record) -> None:
        _refuse_rdma(cloud, record, "Cloud Routers")

    def delete(self, cloud: Cloud, record: Record) -> None:
        for nat in cloud.store.list("nats", record.project):
            if nat.id.startswith(f"{record.id}/"):
                raise in_use("router", record.id, nat.id)

    def outputs(self, record: Record) -> dict[str, Any]:
        return {
            **record.inputs,
            "creationTimestamp": record.state["created"],
            "selfLink": compute_link(record.id),
        }


class RouterNat(ResourceType):
    """`gcp:compute/routerNat:RouterNat`."""

    token = "gcp:compute/routerNat:RouterNat"  # noqa: S105 (a type token)
    title = "RouterNat"
    permission = "compute.routers"
    path = "projects/{project}/regions/{region}/routers/{router}/nats/{name}"
    part = True
    located = "region"
    computed = ("autoNetworkTier",)

    def check(self, cloud: Cloud, record: Record) -> None:
        router = record.id.rsplit("/nats/", 1)[0]
        if cloud.store.get(router) is None:
            raise not_found(router)
        if record.inputs.get("enableDynamicPortAllocation") and record.inputs.get("enableEndpointIndependentMapping"):
            raise bad_request(
                "Dynamic Port Allocation cannot be enabled together with Endpoint Independent Mapping for a NAT."
            )

    def outputs(self, record: Record) -> dict[str, Any]:
        return {"enableDynamicPortAllocation": False, "autoNetworkTier": "PREMIUM", "type": "PUBLIC", **record.inputs}
