"""VPC networks of a GKE cluster: new ones, or existing ones.

The layout is that of Google's A4 recipe (GoogleCloudPlatform/cluster-toolkit, examples/gke-a4): a
primary network, and for nodes with RDMA NICs a second one for their other gVNIC, and one RDMA
network in each of their zones.
"""

# Evaluated annotations would import pulumi_gcp.compute: half of a program's start.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from berth.components.gke.arguments import NodeNetwork
from berth.components.gke.errors.hook import error_hook
from berth.components.gke.names import resource_name
from berth.components.gke.network_settings import (
    ExistingNetwork,
    NetworkSettings,
    Ranges,
    ranges_of,
)

POD_RANGE = "pods"
SERVICE_RANGE = "services"

RDMA_MTU = 8896
"""Default MTU of RDMA networks in bytes
(https://docs.cloud.google.com/vpc/docs/rdma-network-profiles)."""

# All traffic between the nodes and pods of one network: Ray and NCCL choose their ports freely.
_ANYTHING: list[pulumi.Input[gcp.compute.FirewallAllowArgsDict]] = [
    {"protocol": "tcp", "ports": ["0-65535"]},
    {"protocol": "udp", "ports": ["0-65535"]},
    {"protocol": "icmp"},
]


@dataclass(frozen=True)
class NetworkInputs:
    """Inputs of the networks."""

    settings: NetworkSettings
    project: str
    region: str
    private_nodes: bool = True
    """Whether nodes have no public addresses, so that they need Cloud NAT."""
    rdma_zones: Sequence[str] = ()
    """Zones of pools whose nodes need the second network and an RDMA network (`rdma: networks`)."""


class Network(pulumi.ComponentResource):
    """Network and subnetwork of the cluster, and further networks of nodes with RDMA NICs."""

    network: pulumi.Output[str]
    """Self link or path of the network."""
    subnetwork: pulumi.Output[str]
    """Self link or path of the subnetwork."""
    pod_range: str
    """Name of the secondary range for pods."""
    service_range: str
    """Name of the secondary range for Services."""

    def __init__(
        self, name: str, inputs: NetworkInputs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("berth:gke:Network", name, None, opts)
        self._name = name
        self._inputs = inputs
        hooks = pulumi.ResourceHookBinding(on_error=[error_hook(self, "network", inputs.project)])
        self._child = pulumi.ResourceOptions(parent=self, hooks=hooks)
        self._second: list[NodeNetwork] = []
        self._rdma: dict[str, list[NodeNetwork]] = {}
        self._own_second: list[pulumi.Resource] = []
        self._own_rdma: dict[str, list[pulumi.Resource]] = {}
        if inputs.settings.existing:
            self._use(inputs.settings.existing)
        else:
            ranges = ranges_of(inputs.settings)
            self._make_primary(ranges)
            if inputs.rdma_zones:
                self._make_second(ranges)
            for zone in inputs.rdma_zones:
                self._make_rdma(zone, ranges)
        self.register_outputs({"network": self.network, "subnetwork": self.subnetwork})

    def node_networks(self, zone: str) -> list[NodeNetwork]:
        """Return further interfaces of a zone's nodes in GKE's order: second gVNIC, RDMA 0 to 7."""
        return [*self._second, *self._rdma.get(zone, [])]

    def node_subnetworks(self, zone: str) -> list[pulumi.Resource]:
        """Return the subnetworks of these interfaces; none of existing networks.

        `node_networks` has their names as plain text, so that a pool must depend on them itself.
        """
        return [*self._own_second, *self._own_rdma.get(zone, [])]

    def _use(self, existing: ExistingNetwork) -> None:
        host = f"projects/{existing.project or self._inputs.project}"
        region = f"{host}/regions/{self._inputs.region}"
        self.network = pulumi.Output.from_input(f"{host}/global/networks/{existing.network}")
        self.subnetwork = pulumi.Output.from_input(f"{region}/subnetworks/{existing.subnetwork}")
        self.pod_range = existing.pod_range
        self.service_range = existing.service_range
        if existing.gvnic:
            second = self._existing_interface(
                host, existing.gvnic.network, existing.gvnic.subnetwork
            )
            self._second = [second]
        if existing.rdma:
            interfaces = [
                self._existing_interface(host, existing.rdma.network, subnetwork)
                for subnetwork in existing.rdma.subnetworks
            ]
            self._rdma = dict.fromkeys(self._inputs.rdma_zones, interfaces)

    def _existing_interface(self, host: str, network: str, subnetwork: str) -> NodeNetwork:
        """Return a node's interface in an existing network of a project, `projects/PROJECT`.

        Node pools name the networks of their own project, and give paths for those of a host
        project.
        """
        if host == f"projects/{self._inputs.project}":
            return {"network": network, "subnetwork": subnetwork}
        return {
            "network": f"{host}/global/networks/{network}",
            "subnetwork": f"{host}/regions/{self._inputs.region}/subnetworks/{subnetwork}",
        }

    def _make_primary(self, ranges: Ranges) -> None:
        self.pod_range = POD_RANGE
        self.service_range = SERVICE_RANGE
        network = self._network(self._name, self._inputs.settings.mtu)
        subnetwork = gcp.compute.Subnetwork(
            self._name,
            name=self._name,
            network=network.self_link,
            region=self._inputs.region,
            ip_cidr_range=ranges.nodes,
            # Private nodes reach Google's images and APIs by it, and everything else by NAT.
            private_ip_google_access=True,
            secondary_ip_ranges=[
                {"range_name": POD_RANGE, "ip_cidr_range": ranges.pods},
                {"range_name": SERVICE_RANGE, "ip_cidr_range": ranges.services},
            ],
            opts=self._child,
        )
        self._allow_within(
            resource_name(self._name, "internal"), network, [ranges.nodes, ranges.pods]
        )
        if self._inputs.private_nodes and self._inputs.settings.nat:
            self._make_nat(network)
        self.network = network.self_link
        self.subnetwork = subnetwork.self_link

    def _make_nat(self, network: gcp.compute.Network) -> None:
        name = resource_name(self._name, "router")
        router = gcp.compute.Router(
            name, name=name, network=network.self_link, region=self._inputs.region, opts=self._child
        )
        name = resource_name(self._name, "nat")
        gcp.compute.RouterNat(
            name,
            name=name,
            router=router.name,
            region=self._inputs.region,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            # A node full of pods that fetch from one address needs more than the fixed number of 64
            # ports (https://docs.cloud.google.com/nat/docs/ports-and-addresses); this excludes the
            # other option.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=self._child,
        )

    def _make_second(self, ranges: Ranges) -> None:
        name = resource_name(self._name, "gvnic")
        network = self._network(name, self._inputs.settings.mtu)
        self._own_second = [self._subnetwork(name, network, ranges.gvnic)]
        self._allow_within(resource_name(self._name, "gvnic", "internal"), network, [ranges.gvnic])
        self._second = [{"network": name, "subnetwork": name}]

    def _make_rdma(self, zone: str, ranges: Ranges) -> None:
        """Register an RDMA network: bound to one zone by its profile, without firewall rules.

        Networks of two zones never meet, so they have the same ranges.
        """
        profile = f"projects/{self._inputs.project}/global/networkProfiles/{zone}-vpc-roce"
        name = resource_name(self._name, "rdma", zone)
        network = self._network(name, RDMA_MTU, profile)
        ranges_by_name = {
            resource_name(self._name, "rdma", zone, str(number)): cidr
            for number, cidr in enumerate(ranges.rdma_subnetworks)
        }
        self._own_rdma[zone] = [
            self._subnetwork(subnetwork, network, cidr)
            for subnetwork, cidr in ranges_by_name.items()
        ]
        self._rdma[zone] = [
            {"network": name, "subnetwork": subnetwork} for subnetwork in ranges_by_name
        ]

    def _network(self, name: str, mtu: int, profile: str | None = None) -> gcp.compute.Network:
        return gcp.compute.Network(
            name,
            name=name,
            auto_create_subnetworks=False,
            mtu=mtu,
            network_profile=profile,
            opts=self._child,
        )

    def _subnetwork(
        self, name: str, network: gcp.compute.Network, cidr: str
    ) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            name,
            name=name,
            network=network.self_link,
            region=self._inputs.region,
            ip_cidr_range=cidr,
            opts=self._child,
        )

    def _allow_within(self, name: str, network: gcp.compute.Network, ranges: list[str]) -> None:
        gcp.compute.Firewall(
            name,
            name=name,
            network=network.self_link,
            allows=_ANYTHING,
            source_ranges=ranges,
            opts=self._child,
        )
