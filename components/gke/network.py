"""The VPC network of a GKE cluster, with ranges for nodes, pods and Services."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from stacks.settings.network import NetworkSettings
from stacks.settings.ranges import ranges_of

POD_RANGE = "pods"
SERVICE_RANGE = "services"


@dataclass(frozen=True)
class NetworkInputs:
    """What a network needs to know.

    Attributes:
        settings: its address ranges.
        region: region of the subnetwork.
    """

    settings: NetworkSettings
    region: str


class Network(pulumi.ComponentResource):
    """A custom-mode VPC network with one VPC-native subnetwork."""

    network: pulumi.Output[str]
    """Self link of the network."""
    subnetwork: pulumi.Output[str]
    """Self link of the subnetwork; its secondary ranges are named `pods` and `services`."""

    def __init__(self, name: str, inputs: NetworkInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the network.

        Args:
            name: name of the network and its subnetwork.
            inputs: ranges and region.
            opts: Pulumi's options.
        """
        super().__init__("berth:gke:Network", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        ranges = ranges_of(inputs.settings)
        network = compute.Network(name, name=name, auto_create_subnetworks=False, opts=child)
        subnetwork = compute.Subnetwork(
            name,
            name=name,
            network=network.self_link,
            region=inputs.region,
            ip_cidr_range=ranges.nodes,
            private_ip_google_access=True,
            secondary_ip_ranges=[
                compute.SubnetworkSecondaryIpRangeArgs(range_name=POD_RANGE, ip_cidr_range=ranges.pods),
                compute.SubnetworkSecondaryIpRangeArgs(range_name=SERVICE_RANGE, ip_cidr_range=ranges.services),
            ],
            opts=child,
        )
        self.network, self.subnetwork = network.self_link, subnetwork.self_link
        self.register_outputs({"network": self.network, "subnetwork": self.subnetwork})
