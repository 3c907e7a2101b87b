"""Cloud Routers and Cloud NAT of the simulated cloud: how private nodes reach the internet.

In the API a NAT is a part of its router; here each has a record, and a router stays while it has one.

Answers to (read): google-beta/services/compute/resource_compute_router.go and
    resource_compute_router_nat.go of https://github.com/hashicorp/terraform-provider-google-beta
    (fields).
Answers to (read): https://docs.cloud.google.com/nat/docs/ports-and-addresses (dynamic port
    allocation excludes endpoint-independent mapping), and
    https://docs.cloud.google.com/vpc/docs/rdma-network-profiles (no routers in RDMA networks).
Answers to (believed): a router with a NAT cannot be deleted, and the texts of refusals. Such calls
    would settle them.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.errors import bad_request, in_use, not_found
from berth.lab.plugins.gcp.references import find_network, rdma_zone
from berth.lab.plugins.gcp.resource import Cloud, ResourceType, check_name, compute_link, last_part, region_problems

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

_LISTED = "LIST_OF_SUBNETWORKS"


class Router(ResourceType):
    """`gcp:compute/router:Router`."""

    token = "gcp:compute/router:Router"  # noqa: S105 (a type token)
    title = "Router"
    permission = "compute.routers"
    located = "region"
    computed = ("selfLink", "creationTimestamp")

    def id(self, inputs: dict[str, Any]) -> str:
        return f"projects/{inputs['project']}/regions/{inputs['region']}/routers/{inputs['name']}"

    def problems(self, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        return region_problems(inputs)

    def create(self, cloud: Cloud, record: Record) -> None:
        check_name(record.inputs["name"])
        network = find_network(cloud, record.inputs["network"], record.project)
        if rdma_zone(network):
            raise bad_request(
                f"The network '{network.id}' has the network profile "
                f"'{last_part(network.inputs['networkProfile'])}', which does not allow Cloud Routers"
            )

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
    part = True
    located = "region"
    computed = ("autoNetworkTier",)

    def id(self, inputs: dict[str, Any]) -> str:
        router = f"projects/{inputs['project']}/regions/{inputs['region']}/routers/{last_part(inputs['router'])}"
        return f"{router}/nats/{inputs['name']}"

    def problems(self, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        return region_problems(inputs)

    def create(self, cloud: Cloud, record: Record) -> None:
        check_name(record.inputs["name"])
        path = record.id.rsplit("/nats/", 1)[0]
        if cloud.store.get(path) is None:
            raise not_found(path)
        self._check(record.inputs)

    def update(self, cloud: Cloud, old: Record, record: Record) -> None:
        del cloud, old
        self._check(record.inputs)

    @staticmethod
    def _check(inputs: dict[str, Any]) -> None:
        if inputs.get("natIpAllocateOption") == "MANUAL_ONLY" and not inputs.get("natIps"):
            raise bad_request(
                "Invalid value for field 'resource.nats[0].natIps': NAT IPs must be given for MANUAL_ONLY."
            )
        if (inputs.get("sourceSubnetworkIpRangesToNat") == _LISTED) is not bool(inputs.get("subnetworks")):
            raise bad_request(
                f"Invalid value for field 'resource.nats[0].subnetworks': subnetworks go with {_LISTED}, and only with it."
            )
        if inputs.get("enableDynamicPortAllocation") and inputs.get("enableEndpointIndependentMapping"):
            raise bad_request(
                "Dynamic Port Allocation cannot be enabled together with Endpoint Independent Mapping for a NAT."
            )

    def outputs(self, record: Record) -> dict[str, Any]:
        return {"enableDynamicPortAllocation": False, "autoNetworkTier": "PREMIUM", "type": "PUBLIC", **record.inputs}
