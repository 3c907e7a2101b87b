"""Checks of existing networks that the settings name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, last
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
        self._place = {"project": project, "region": region}

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
                facts = {**self._place, "subnetwork": existing.subnetwork, "name": name, "key": key}
                yield TOPIC.found("no-range", has=has, **facts)

    def rdma(self, existing: ExistingRdmaNetwork, zones: list[str]) -> Iterable[Finding]:
        network = self._network(existing.network)
        if network is not None:
            profile = last(network.get("networkProfile"))
            for zone in zones:
                if profile != f"{zone}-vpc-roce":
                    has = f"profile {profile}" if profile else "no network profile"
                    yield TOPIC.found("not-rdma", network=existing.network, has=has, zone=zone, **self._place)
        yield from self.subnetworks(existing.network, existing.subnetworks)

    def subnetworks(self, network: str, names: list[str]) -> Iterable[Finding]:
        facts = {**self._place, "network": network}
        if self._network(network) is None:
            yield TOPIC.found("no-network", **facts)
            return
        there = {name: self._subnetwork(name) for name in names}
        for name, found in there.items():
            if found is not None and (other := last(found.get("network"))) != network:
                yield TOPIC.found("elsewhere", subnetwork=name, other=other, **facts)
                return
        if absent := [name for name, found in there.items() if found is None]:
            yield TOPIC.found("no-subnetwork", names=", ".join(absent), **facts)
            return
        many = f"subnetwork {names[0]}" if len(names) == 1 else counted(len(names), "subnetwork")
        yield TOPIC.found("exists", subnetworks=many, **facts)

    def _network(self, name: str) -> dict[str, Any] | None:
        return self._google.exists(
            "compute", f"projects/{self._project}/global/networks/{name}", fields="name,networkProfile"
        )

    def _subnetwork(self, name: str) -> dict[str, Any] | None:
        path = f"projects/{self._project}/regions/{self._region}/subnetworks/{name}"
        return self._google.exists("compute", path, fields="name,network,secondaryIpRanges")
