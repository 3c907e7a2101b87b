"""Checks of an environment's place in Google Cloud: machines, networks, versions of GKE."""

from collections.abc import Iterable
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, last
from berth.components.core.words import counted
from berth.components.gke import (
    ExistingNetwork,
    ExistingRdmaNetwork,
    needed_features,
    parse_gke_version,
    why_too_old,
)
from berth.stacks.settings.environment import EnvironmentSettings

MACHINES, NETWORKS, GKE = Topic("machines"), Topic("networks"), Topic("GKE")

_SHOWN = 4


def check_zones(google: Google, settings: EnvironmentSettings) -> list[Finding]:
    """Check each pool's machine type and GPU in each of its zones, and the RDMA profile."""
    pairs = dict.fromkeys(
        (pool.machine_type, zone, pool.gpus.type if pool.gpus else "", pool.machine.gpus)
        for pool in settings.pools.values()
        for zone in settings.zones_of(pool)
    )
    return [
        *(_machine(google, *pair) for pair in pairs),
        *(_profile(google, zone) for zone in settings.rdma_zones),
    ]


def _machine(google: Google, machine: str, zone: str, attached: str, count: int) -> Finding:
    path = f"projects/{google.project}/zones/{zone}"
    found = google.exists("compute", f"{path}/machineTypes/{machine}", fields="name,accelerators")
    if found is None:
        return MACHINES.found("no-machine", zone=zone, machine=machine, project=google.project)
    counts = {
        last(entry.get("guestAcceleratorType")): entry.get("guestAcceleratorCount")
        for entry in found.get("accelerators") or []
    }
    counts = counts or ({attached: count} if attached else {})
    for gpu in filter(None, counts):
        if google.exists("compute", f"{path}/acceleratorTypes/{gpu}", fields="name") is None:
            return MACHINES.found(
                "no-gpu", zone=zone, machine=machine, gpu=gpu, project=google.project
            )
    gpus = ", ".join(f"{count} × {gpu}" for gpu, count in counts.items())
    return MACHINES.found("zone", zone=zone, machine=machine, gpus=f" ({gpus})" if gpus else "")


def _profile(google: Google, zone: str) -> Finding:
    name = f"{zone}-vpc-roce"
    if (
        google.exists(
            "compute", f"projects/{google.project}/global/networkProfiles/{name}", fields="name"
        )
        is not None
    ):
        return MACHINES.found("rdma", zone=zone, profile=name)
    return MACHINES.found("no-rdma", zone=zone, profile=name, project=google.project)


def check_networks(google: Google, settings: EnvironmentSettings) -> Iterable[Finding]:
    """Check every existing network and subnetwork that the settings name."""
    existing = settings.network.existing
    if existing is None:
        return
    at = _Networks(google, existing.project or google.project, settings.in_region)
    yield from at.primary(existing)
    if existing.gvnic:
        yield from at.subnetworks(existing.gvnic.network, [existing.gvnic.subnetwork])
    if existing.rdma:
        yield from at.rdma(existing.rdma, settings.rdma_zones)


class _Networks:
    """Networks of a project, with their subnetworks in a region."""

    def __init__(self, google: Google, project: str, region: str) -> None:
        self._google, self._project, self._region = google, project, region
        self._place = {"project": project, "region": region}

    def primary(self, existing: ExistingNetwork) -> Iterable[Finding]:
        yield from self.subnetworks(existing.network, [existing.subnetwork])
        subnetwork = self._subnetwork(existing.subnetwork)
        if subnetwork is None:
            return
        there = {str(known.get("rangeName")) for known in subnetwork.get("secondaryIpRanges") or []}
        for name, key in (
            (existing.pod_range, "podRange"),
            (existing.service_range, "serviceRange"),
        ):
            if name not in there:
                has = f"it has {', '.join(sorted(there))}" if there else "it has none"
                facts = {**self._place, "subnetwork": existing.subnetwork, "name": name, "key": key}
                yield NETWORKS.found("no-range", has=has, **facts)

    def rdma(self, existing: ExistingRdmaNetwork, zones: list[str]) -> Iterable[Finding]:
        network = self._network(existing.network)
        if network is not None:
            profile = last(network.get("networkProfile"))
            for zone in zones:
                if profile != f"{zone}-vpc-roce":
                    has = f"profile {profile}" if profile else "no network profile"
                    yield NETWORKS.found(
                        "not-rdma", network=existing.network, has=has, zone=zone, **self._place
                    )
        yield from self.subnetworks(existing.network, existing.subnetworks)

    def subnetworks(self, network: str, names: list[str]) -> Iterable[Finding]:
        facts = {**self._place, "network": network}
        if self._network(network) is None:
            yield NETWORKS.found("no-network", **facts)
            return
        there = {name: self._subnetwork(name) for name in names}
        for name, found in there.items():
            if found is not None and (other := last(found.get("network"))) != network:
                yield NETWORKS.found("elsewhere", subnetwork=name, other=other, **facts)
                return
        if absent := [name for name, found in there.items() if found is None]:
            yield NETWORKS.found("no-subnetwork", names=", ".join(absent), **facts)
            return
        many = f"subnetwork {names[0]}" if len(names) == 1 else counted(len(names), "subnetwork")
        yield NETWORKS.found("exists", subnetworks=many, **facts)

    def _network(self, name: str) -> dict[str, Any] | None:
        return self._google.exists(
            "compute",
            f"projects/{self._project}/global/networks/{name}",
            fields="name,networkProfile",
        )

    def _subnetwork(self, name: str) -> dict[str, Any] | None:
        path = f"projects/{self._project}/regions/{self._region}/subnetworks/{name}"
        return self._google.exists("compute", path, fields="name,network,secondaryIpRanges")


def check_gke(google: Google, settings: EnvironmentSettings, cluster: str) -> list[Finding]:
    """Check the version of a cluster by name; without one, that of its release channel."""
    location = f"projects/{google.project}/locations/{settings.location}"
    found = google.exists(
        "container",
        f"{location}/clusters/{cluster}",
        fields="status,statusMessage,currentMasterVersion",
    )
    if found is not None:
        return [_there(google, settings, cluster, found)]
    return [_to_be_made(google.get("container", f"{location}/serverConfig"), settings)]


def _there(
    google: Google, settings: EnvironmentSettings, cluster: str, found: dict[str, Any]
) -> Finding:
    version, status = str(found.get("currentMasterVersion", "")), str(found.get("status", ""))
    facts = {"cluster": cluster, "location": settings.location, "project": google.project}
    if status not in ("RUNNING", "RECONCILING"):
        reason = found.get("statusMessage") or "GKE does not say why"
        return GKE.found("broken", status=status, reason=reason, **facts)
    if version and (problem := why_too_old(settings, version)):
        return GKE.found(
            "old-cluster",
            problem=problem,
            since=needed_features(settings)[0].feature.since,
            **facts,
        )
    return GKE.found("cluster", cluster=cluster, status=status, version=version)


def _to_be_made(config: dict[str, Any], settings: EnvironmentSettings) -> Finding:
    channel, requested = settings.cluster.release_channel, settings.cluster.version
    channels = {known.get("channel"): known for known in config.get("channels") or []}
    of_channel = channels.get(channel, {})
    versions = [str(version) for version in of_channel.get("validVersions") or []]
    if requested is None:
        version = str(of_channel.get("defaultVersion") or "")
    else:
        # The newest that begins with it
        # (https://docs.cloud.google.com/kubernetes-engine/versioning#specifying_cluster_version).
        parts = parse_gke_version(requested).parts
        version = next(
            (known for known in versions if parse_gke_version(known).parts[: len(parts)] == parts),
            "",
        )
    facts = {"channel": channel, "location": settings.location, "project": settings.project}
    if not version:
        has = ", ".join(versions[:_SHOWN]) or "none that it lists"
        return GKE.found("no-version", version=requested or "version", has=has, **facts)
    if problem := why_too_old(settings, version):
        return GKE.found("old-channel", version=version, problem=problem, **facts)
    features = [need.feature for need in needed_features(settings)]
    reason = f", and {features[0].name} needs {features[0].since}" if features else ""
    return GKE.found("channel", channel=channel, version=version, reason=reason)
