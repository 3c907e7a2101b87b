"""Networks, subnetworks, firewalls, routers and Cloud NAT of the simulated cloud.

In the API a NAT is a part of its router; here each has a record.

Answers to (read): google-beta/services/compute/resource_compute_network.go,
    resource_compute_subnetwork.go, resource_compute_firewall.go, resource_compute_router.go and
    resource_compute_router_nat.go of https://github.com/hashicorp/terraform-provider-google-beta
    (fields, CustomizeDiff).
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.resource import Kind, ResourceType, compute_link, number_of

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record


class Network(ResourceType):
    """`gcp:compute/network:Network`."""

    token = "gcp:compute/network:Network"  # noqa: S105 (a type token)
    title = "Network"
    path = "projects/{project}/global/networks/{name}"
    computed = ("selfLink", "numericId", "networkId", "gatewayIpv4")

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


class Subnetwork(ResourceType):
    """`gcp:compute/subnetwork:Subnetwork`."""

    token = "gcp:compute/subnetwork:Subnetwork"  # noqa: S105 (a type token)
    title = "Subnetwork"
    path = "projects/{project}/regions/{region}/subnetworks/{name}"
    located = "region"
    computed = ("selfLink", "gatewayAddress", "creationTimestamp", "subnetworkId", "fingerprint")

    def also_replaces(self, state: dict[str, Any], new: dict[str, Any]) -> dict[str, Kind]:
        """A range can grow in place, and not shrink or move."""
        try:
            before, after = (ipaddress.IPv4Network(str(values["ipCidrRange"])) for values in (state, new))
        except (ValueError, KeyError):
            return {}
        return {} if before.subnet_of(after) else {"ipCidrRange": Kind.UPDATE_REPLACE}

    def outputs(self, record: Record) -> dict[str, Any]:
        return {
            "privateIpGoogleAccess": False,
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            **record.inputs,
            "creationTimestamp": record.state["created"],
            "fingerprint": number_of(repr(sorted(record.inputs.items()))),
            "gatewayAddress": str(ipaddress.IPv4Network(str(record.inputs["ipCidrRange"]))[1]),
            "subnetworkId": int(number_of(record.id)) % 10**15,
            "selfLink": compute_link(record.id),
        }


class Firewall(ResourceType):
    """`gcp:compute/firewall:Firewall`."""

    token = "gcp:compute/firewall:Firewall"  # noqa: S105 (a type token)
    title = "Firewall"
    path = "projects/{project}/global/firewalls/{name}"
    computed = ("selfLink", "creationTimestamp")

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
    path = "projects/{project}/regions/{region}/routers/{name}"
    located = "region"
    computed = ("selfLink", "creationTimestamp")

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
    path = "projects/{project}/regions/{region}/routers/{router}/nats/{name}"
    located = "region"
    computed = ("autoNetworkTier",)

    def outputs(self, record: Record) -> dict[str, Any]:
        return {"enableDynamicPortAllocation": False, "autoNetworkTier": "PREMIUM", "type": "PUBLIC", **record.inputs}
