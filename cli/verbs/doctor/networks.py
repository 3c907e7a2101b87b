"""Checks of existing networks that the settings name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google
from berth.components.core.words import counted
from berth.components.gke import ExistingNetwork, ExistingRdmaNetwork
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("networks")


def check(google: Google, settings: EnvironmentSettings) -> Iterable[Finding]:
    """Check every existing network and subnetwork that the settings name."""
    existing = settings.network.existing
    if existing is None:
        return
    at = _Networks(google, existing.project or google.project, settings.in_region)
    yield from at.primary(existing)
    if existing.gvnic:
        yield from at.subnetworks(existing.gvnic.network, [existing.gvnic.subnetwork])
    if existing.rdma:
        zones = {
            zone for pool in settings.pools.values() if pool.rdma == "networks" for zone in settings.zones_of(pool)
        }
        yield from at.rdma(existing.rdma, sorted(zones))


class _Networks:
    """Networks of a project, with their subnetworks in a region."""

    def __init__(self, google: Google, project: str, region: str) -> None:
        self._google, self._project, self._region = google, project, region

    def primary(self, existing: ExistingNetwork) -> Iterable[Finding]:
        found = list(self.subnetworks(existing.network, [existing.subnetwork]))
        yield from found
        subnetwork = self._subnetwork(existing.subnetwork)
        if subnetwork is None:
            return
        there = {str(known.get("rangeName")) for known in subnetwork.get("secondaryIpRanges") or []}
        for name, key in ((existing.pod_range, "podRange"), (existing.service_range, "serviceRange")):
            if name not in there:
                has = f"it has {', '.join(sorted(there))}" if there else "it has none"
                yield TOPIC.missing(
                    f"subnetwork {existing.subnetwork} has no secondary range {name} ({key}); {has}",
                    f"gcloud compute networks subnets update {existing.subnetwork} --project={self._project}"
                    f" --region={self._region} --add-secondary-ranges={name}=RANGE",
                )

    def rdma(self, existing: ExistingRdmaNetwork, zones: list[str]) -> Iterable[Finding]:
        network = self._network(existing.network)
        if network is not None:
            profile = str(network.get("networkProfile", "")).rsplit("/", 1)[-1]
            for zone in zones:
                if profile != f"{zone}-vpc-roce":
                    has = f"profile {profile}" if profile else "no network profile"
                    yield TOPIC.missing(
                        f"network {existing.network} has {has}: it cannot be the RDMA network of nodes in {zone}",
                        f"gcloud compute networks create NAME --project={self._project} --subnet-mode=custom"
                        f" --network-profile={zone}-vpc-roce",
                    )
        yield from self.subnetworks(existing.network, existing.subnetworks)

    def subnetworks(self, network: str, names: list[str]) -> Iterable[Finding]:
        if self._network(network) is None:
            yield TOPIC.missing(
                f"project {self._project} has no network {network}",
                f"gcloud compute networks list --project={self._project}",
            )
            return
        wrong = []
        for name in names:
            found = self._subnetwork(name)
            if found is None:
                wrong.append(name)
            elif str(found.get("network", "")).rsplit("/", 1)[-1] != network:
                yield TOPIC.missing(
                    f"subnetwork {name} belongs to network {str(found.get('network', '')).rsplit('/', 1)[-1]}, not to"
                    f" {network}",
                    f"gcloud compute networks subnets list --project={self._project} --network={network}",
                )
                return
        if wrong:
            yield TOPIC.missing(
                f"network {network} has no {', '.join(wrong)} in {self._region}",
                f"gcloud compute networks subnets list --project={self._project} --network={network}"
                f" --regions={self._region}",
            )
            return
        many = f"subnetwork {names[0]}" if len(names) == 1 else counted(len(names), "subnetwork")
        yield TOPIC.fine(f"network {network} exists, with {many} in {self._region}")

    def _network(self, name: str) -> dict[str, Any] | None:
        return self._google.exists(
            "compute", f"projects/{self._project}/global/networks/{name}", fields="name,networkProfile"
        )

    def _subnetwork(self, name: str) -> dict[str, Any] | None:
        path = f"projects/{self._project}/regions/{self._region}/subnetworks/{name}"
        return self._google.exists("compute", path, fields="name,network,secondaryIpRanges")
