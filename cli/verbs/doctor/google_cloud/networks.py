"""Checks of the existing networks and subnetworks that the settings name."""

from collections.abc import Iterable
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, resource_name
from berth.cli.verbs.doctor.findings import DoctorFinding
from berth.cli.verbs.doctor.google_cloud.address_ranges import (
    NETWORKS,
    check_ranges,
    ranges_of_subnetworks,
)
from berth.components.core.words import counted
from berth.components.gke import ExistingNetwork, ExistingRdmaNetwork
from berth.stacks.settings.environment import EnvironmentSettings

_OF_A_SUBNETWORK = "name,network,ipCidrRange,secondaryIpRanges,privateIpGoogleAccess"


def check_networks(google: GoogleClient, settings: EnvironmentSettings) -> Iterable[DoctorFinding]:
    """Check every existing network and subnetwork that the settings name.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    existing = settings.network.existing
    if existing is None:
        return
    networks = _Networks(google, existing.project or google.project, settings.in_region)
    yield from networks.check_subnetworks(existing.network, [existing.subnetwork])
    yield from networks.check_range_names(existing)
    if existing.gvnic:
        yield from networks.check_subnetworks(existing.gvnic.network, [existing.gvnic.subnetwork])
    if existing.rdma:
        yield from networks.check_profile(existing.rdma, settings.rdma_zones)
        yield from networks.check_subnetworks(existing.rdma.network, existing.rdma.subnetworks)
    yield from networks.check_sizes(settings, existing)
    if settings.cluster.private_nodes:
        yield from networks.check_google_access(existing.subnetwork)


class _Networks:
    """Networks of a project, with their subnetworks in a region."""

    def __init__(self, google: GoogleClient, project: str, region: str) -> None:
        self._google = google
        self._project = project
        self._region = region
        self._asked: dict[str, dict[str, Any] | None] = {}

    def check_sizes(
        self, settings: EnvironmentSettings, existing: ExistingNetwork
    ) -> Iterable[DoctorFinding]:
        """Check that the ranges have room for the nodes that the pools can have."""
        names = [existing.subnetwork]
        if existing.gvnic:
            names.append(existing.gvnic.subnetwork)
        if existing.rdma:
            names += existing.rdma.subnetworks
        found = {name: self._subnetwork(name) or {} for name in dict.fromkeys(names)}
        ranges = ranges_of_subnetworks(existing, found)
        yield from check_ranges(settings, ranges, self._project, self._region)

    def check_google_access(self, name: str) -> Iterable[DoctorFinding]:
        """Check that private nodes reach Google's APIs and images, as on berth's own networks."""
        subnetwork = self._subnetwork(name) or {}
        if subnetwork.get("privateIpGoogleAccess") is False:
            yield NETWORKS.warning(
                f"subnetwork {name} has no Private Google Access: nodes without public addresses"
                " reach Google's APIs and images only by a NAT",
                f"gcloud compute networks subnets update {name} --project={self._project}"
                f" --region={self._region} --enable-private-ip-google-access",
            )

    def check_range_names(self, existing: ExistingNetwork) -> Iterable[DoctorFinding]:
        """Check that the primary subnetwork has the ranges of pods and of services."""
        subnetwork = self._subnetwork(existing.subnetwork)
        if subnetwork is None:
            return  # check_subnetworks says so
        secondary = subnetwork.get("secondaryIpRanges") or []
        names = sorted({str(entry.get("rangeName")) for entry in secondary})
        has = f"it has {', '.join(names)}" if names else "it has none"
        for key, name in (
            ("podRange", existing.pod_range),
            ("serviceRange", existing.service_range),
        ):
            if name not in names:
                yield NETWORKS.missing(
                    f"subnetwork {existing.subnetwork} has no secondary range {name} ({key});"
                    f" {has}",
                    f"gcloud compute networks subnets update {existing.subnetwork}"
                    f" --project={self._project} --region={self._region}"
                    f" --add-secondary-ranges={name}=RANGE",
                )

    def check_profile(
        self, existing: ExistingRdmaNetwork, zones: list[str]
    ) -> Iterable[DoctorFinding]:
        """Check that a network has the RDMA profile of each zone."""
        network = self._network(existing.network)
        if network is None:
            return  # check_subnetworks says so
        profile = resource_name(network.get("networkProfile"))
        has = f"profile {profile}" if profile else "no network profile"
        for zone in zones:
            if profile != f"{zone}-vpc-roce":
                yield NETWORKS.missing(
                    f"network {existing.network} has {has}: it cannot be the RDMA network of nodes"
                    f" in {zone}",
                    f"gcloud compute networks create NAME --project={self._project}"
                    f" --subnet-mode=custom --network-profile={zone}-vpc-roce",
                )

    def check_subnetworks(self, network: str, names: list[str]) -> Iterable[DoctorFinding]:
        """Check that a network exists, and has subnetworks of these names in the region."""
        if self._network(network) is None:
            yield NETWORKS.missing(
                f"project {self._project} has no network {network}",
                f"gcloud compute networks list --project={self._project}",
            )
            return
        list_command = (
            f"gcloud compute networks subnets list --project={self._project} --network={network}"
        )
        absent = []
        for name in names:
            subnetwork = self._subnetwork(name)
            if subnetwork is None:
                absent.append(name)
                continue
            actual = resource_name(subnetwork.get("network"))
            if actual != network:
                yield NETWORKS.missing(
                    f"subnetwork {name} belongs to network {actual}, not to {network}",
                    list_command,
                )
                return
        if absent:
            yield NETWORKS.missing(
                f"network {network} has no {', '.join(absent)} in {self._region}",
                f"{list_command} --regions={self._region}",
            )
            return
        subnetworks = (
            f"subnetwork {names[0]}" if len(names) == 1 else counted(len(names), "subnetwork")
        )
        yield NETWORKS.fine(f"network {network} exists, with {subnetworks} in {self._region}")

    def _network(self, name: str) -> dict[str, Any] | None:
        path = f"projects/{self._project}/global/networks/{name}"
        return self._google.exists("compute", path, fields="name,networkProfile")

    def _subnetwork(self, name: str) -> dict[str, Any] | None:
        if name not in self._asked:
            path = f"projects/{self._project}/regions/{self._region}/subnetworks/{name}"
            self._asked[name] = self._google.exists("compute", path, fields=_OF_A_SUBNETWORK)
        return self._asked[name]
