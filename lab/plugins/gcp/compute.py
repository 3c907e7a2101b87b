"""Networks, subnetworks and firewalls of the simulated cloud.

Answers to (read): google-beta/services/compute/resource_compute_network.go,
    resource_compute_subnetwork.go and resource_compute_firewall.go of
    https://github.com/hashicorp/terraform-provider-google-beta (fields, CustomizeDiff).
Answers to (read): https://docs.cloud.google.com/vpc/docs/rdma-network-profiles (RDMA networks), and
    https://docs.cloud.google.com/vpc/docs/mtu (bounds of the MTU).
Answers to (believed): the API refuses another network for a firewall rule, and the texts of
    refusals. Such calls would settle them.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request, in_use, invalid_value, not_found
from berth.lab.plugins.gcp.locations import ZONES
from berth.lab.plugins.gcp.references import PROFILE, find_network, further_networks, is_reference, rdma_zone
from berth.lab.plugins.gcp.resource import (
    Cloud,
    ResourceType,
    check_name,
    compute_link,
    last_part,
    number_of,
    region_problems,
)
from berth.lab.plugins.provider import Kind

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

_MTU_LEAST, _MTU_MOST = 1300, 8896
_MTU_DEFAULT = 1460


def _users(cloud: Cloud, network: Record) -> list[Record]:
    """What needs a network."""
    users = [
        record
        for collection in ("subnetworks", "firewalls", "routers", "clusters")
        for record in cloud.store.list(collection)
        if is_reference(record.inputs.get("network", ""), record.project, network)
    ]
    return users + [
        pool
        for pool in cloud.store.list("nodePools")
        if any(is_reference(extra.get("network", ""), pool.project, network) for extra in further_networks(pool))
    ]


class Network(ResourceType):
    """`gcp:compute/network:Network`."""

    token = "gcp:compute/network:Network"  # noqa: S105 (a type token)
    title = "Network"
    permission = "compute.networks"
    computed = ("selfLink", "numericId", "networkId", "gatewayIpv4")

    def id(self, inputs: dict[str, Any]) -> str:
        return f"projects/{inputs['project']}/global/networks/{inputs['name']}"

    def create(self, cloud: Cloud, record: Record) -> None:
        del cloud
        inputs = record.inputs
        check_name(inputs["name"])
        _check_mtu(inputs)
        profile = inputs.get("networkProfile")
        if profile:
            match = PROFILE.fullmatch(last_part(profile))
            if match is None or match["zone"] not in ZONES:
                raise not_found(f"projects/{inputs['project']}/global/networkProfiles/{last_part(profile)}")
            if inputs.get("autoCreateSubnetworks", True):
                raise bad_request(
                    f"Invalid value for field 'resource.autoCreateSubnetworks': a network with the network profile "
                    f"{last_part(profile)} must be a custom mode network"
                )
        if inputs.get("autoCreateSubnetworks", True):
            raise bad_request(
                "the simulated cloud has no auto mode networks: set autoCreateSubnetworks to false and make the "
                "subnetworks"
            )

    def update(self, cloud: Cloud, old: Record, record: Record) -> None:
        del cloud, old
        _check_mtu(record.inputs)

    def delete(self, cloud: Cloud, record: Record) -> None:
        for user in _users(cloud, record):
            raise in_use("network", record.id, user.id)

    def outputs(self, record: Record) -> dict[str, Any]:
        default_mtu = _MTU_MOST if record.inputs.get("networkProfile") else _MTU_DEFAULT
        return {
            "autoCreateSubnetworks": True,
            "deleteDefaultRoutesOnCreate": False,
            "mtu": default_mtu,
            "routingMode": "REGIONAL",
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
            **record.inputs,
            "gatewayIpv4": "",
            "numericId": number_of(record.id),
            "networkId": number_of(record.id),
            "selfLink": compute_link(record.id),
        }


def _check_mtu(inputs: dict[str, Any]) -> None:
    mtu = inputs.get("mtu")
    if mtu and not _MTU_LEAST <= mtu <= _MTU_MOST:
        raise invalid_value(
            "resource.mtu", mtu, f"Must be greater than or equal to {_MTU_LEAST} and less than or equal to {_MTU_MOST}"
        )


class Subnetwork(ResourceType):
    """`gcp:compute/subnetwork:Subnetwork`."""

    token = "gcp:compute/subnetwork:Subnetwork"  # noqa: S105 (a type token)
    title = "Subnetwork"
    permission = "compute.subnetworks"
    located = "region"
    computed = ("selfLink", "gatewayAddress", "creationTimestamp", "subnetworkId", "fingerprint")

    def id(self, inputs: dict[str, Any]) -> str:
        return f"projects/{inputs['project']}/regions/{inputs['region']}/subnetworks/{inputs['name']}"

    def problems(self, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        return region_problems(inputs)

    def also_replaces(self, state: dict[str, Any], new: dict[str, Any]) -> dict[str, Kind]:
        try:
            before, after = (_range("ipCidrRange", each["ipCidrRange"]) for each in (state, new))
        except (GoogleApiError, KeyError):
            return {}
        # A range can grow in place, and not shrink or move.
        return {} if before.subnet_of(after) else {"ipCidrRange": Kind.UPDATE_REPLACE}

    def create(self, cloud: Cloud, record: Record) -> None:
        check_name(record.inputs["name"])
        if not record.inputs.get("ipCidrRange"):
            # The provider takes a subnetwork without one, for an internal range; the lab has no internal ranges.
            raise bad_request("Invalid value for field 'resource.ipCidrRange': a subnetwork of the lab needs a range.")
        network = find_network(cloud, record.inputs["network"], record.project)
        zone = rdma_zone(network)
        if zone and record.inputs["region"] != ZONES[zone]:
            raise bad_request(
                f"Invalid value for field 'resource.region': '{record.inputs['region']}'. Subnetworks of the network "
                f"'{network.id}' must be in the region of its network profile's zone {zone}"
            )
        self._check_ranges(cloud, record)

    def update(self, cloud: Cloud, old: Record, record: Record) -> None:
        before = _range("resource.ipCidrRange", old.inputs["ipCidrRange"])
        after = _range("resource.ipCidrRange", record.inputs["ipCidrRange"])
        if not before.subnet_of(after):
            raise invalid_value("resource.ipCidrRange", after, f"Must contain the present range {before}")
        self._check_ranges(cloud, record)

    @staticmethod
    def _check_ranges(cloud: Cloud, record: Record) -> None:
        """No range may overlap another one of the network, or of the subnetwork itself."""
        network = last_part(record.inputs["network"])
        taken = []
        for other in cloud.store.list("subnetworks", record.project):
            if other.id != record.id and last_part(other.inputs["network"]) == network:
                taken += [(item, other.name, other.inputs["region"]) for item in _ranges(other)]
        for item in _ranges(record):
            for used, name, region in taken:
                if item.overlaps(used):
                    raise GoogleApiError(
                        400,
                        f"Invalid IPCidrRange: {item} conflicts with existing subnetwork '{name}' in region '{region}'",
                        "invalid",
                    )
            taken.append((item, record.name, record.inputs["region"]))

    def delete(self, cloud: Cloud, record: Record) -> None:
        for user in cloud.store.list("clusters"):
            if is_reference(user.inputs.get("subnetwork", ""), user.project, record):
                raise in_use("subnetwork", record.id, user.id)
        for pool in cloud.store.list("nodePools"):
            for extra in further_networks(pool):
                if is_reference(extra.get("subnetwork", ""), pool.project, record):
                    raise in_use("subnetwork", record.id, pool.id)

    def outputs(self, record: Record) -> dict[str, Any]:
        first = _range("resource.ipCidrRange", record.inputs["ipCidrRange"])
        return {
            "privateIpGoogleAccess": False,
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            **record.inputs,
            "creationTimestamp": record.state["created"],
            "fingerprint": number_of(repr(sorted(record.inputs.items()))),
            "gatewayAddress": str(first[1]),
            "subnetworkId": int(number_of(record.id)) % 10**15,
            "selfLink": compute_link(record.id),
        }


def _range(field: str, value: object) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(str(value))
    except ValueError:
        raise invalid_value(field, value, "Must be a CIDR address range that is contained in a valid subnet") from None


def _ranges(record: Record) -> list[ipaddress.IPv4Network]:
    secondary = record.inputs.get("secondaryIpRanges") or []
    return [
        _range("resource.ipCidrRange", record.inputs["ipCidrRange"]),
        *(
            _range(f"resource.secondaryIpRanges[{i}].ipCidrRange", item["ipCidrRange"])
            for i, item in enumerate(secondary)
        ),
    ]


class Firewall(ResourceType):
    """`gcp:compute/firewall:Firewall`."""

    token = "gcp:compute/firewall:Firewall"  # noqa: S105 (a type token)
    title = "Firewall"
    permission = "compute.firewalls"
    computed = ("selfLink", "creationTimestamp")

    def id(self, inputs: dict[str, Any]) -> str:
        return f"projects/{inputs['project']}/global/firewalls/{inputs['name']}"

    def problems(self, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
        if inputs.get("direction") != "EGRESS" and not any(key in inputs for key in sources):
            text = "one of source_tags, source_ranges, or source_service_accounts must be defined on an INGRESS rule"
            return [("", text)]
        return []

    def create(self, cloud: Cloud, record: Record) -> None:
        check_name(record.inputs["name"])
        self._check(cloud, record)

    def update(self, cloud: Cloud, old: Record, record: Record) -> None:
        if last_part(old.inputs["network"]) != last_part(record.inputs["network"]):
            raise invalid_value(
                "resource.network", record.inputs["network"], "Cannot change network for a firewall rule."
            )
        self._check(cloud, record)

    @staticmethod
    def _check(cloud: Cloud, record: Record) -> None:
        network = find_network(cloud, record.inputs["network"], record.project)
        if rdma_zone(network):
            raise bad_request(
                f"The network '{network.id}' has the network profile "
                f"'{last_part(network.inputs['networkProfile'])}', which does not allow firewall rules: its traffic is "
                "always allowed"
            )
        for key in ("sourceRanges", "destinationRanges"):
            for index, item in enumerate(record.inputs.get(key) or []):
                _range(f"resource.{key}[{index}]", item)

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
