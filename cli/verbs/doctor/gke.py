"""Check of GKE's version: the cluster's, or that of a new one."""

from __future__ import annotations

from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google
from berth.components.gke import needed, parse, too_old
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("GKE")

_SHOWN = 4


def check(google: Google, settings: EnvironmentSettings, cluster: str) -> list[Finding]:
    """Check the version of a cluster by name; without one, that of its release channel."""
    location = f"projects/{google.project}/locations/{settings.location}"
    found = google.exists(
        "container", f"{location}/clusters/{cluster}", fields="status,statusMessage,currentMasterVersion"
    )
    if found is not None:
        return [_there(google, settings, cluster, found)]
    return [_to_be_made(google.get("container", f"{location}/serverConfig"), settings)]


def _there(google: Google, settings: EnvironmentSettings, cluster: str, found: dict[str, Any]) -> Finding:
    version, status = str(found.get("currentMasterVersion", "")), str(found.get("status", ""))
    show = f"gcloud container clusters describe {cluster} --location={settings.location} --project={google.project}"
    if status not in ("RUNNING", "RECONCILING"):
        return TOPIC.missing(
            f"cluster {cluster} is {status}: {found.get('statusMessage') or 'GKE does not say why'}", show
        )
    problem = too_old(settings, version) if version else None
    if problem:
        where = f"--location={settings.location} --project={google.project}"
        upgrade = f"gcloud container clusters upgrade {cluster} --master {where}"
        return TOPIC.missing(
            f"cluster {cluster}: {problem}", f"{upgrade} --cluster-version={needed(settings)[0].feature.since}"
        )
    return TOPIC.fine(f"cluster {cluster} exists ({status}), with GKE {version}")


def _to_be_made(config: dict[str, Any], settings: EnvironmentSettings) -> Finding:
    channel = settings.cluster.release_channel
    of_channel: dict[str, Any] = next(
        (known for known in config.get("channels") or [] if known.get("channel") == channel), {}
    )
    versions = [str(version) for version in of_channel.get("validVersions") or []]
    listing = (
        f"gcloud container get-server-config --location={settings.location} --project={settings.project}"
        f' --flatten=channels --filter="channels.channel={channel}"'
    )
    requested = settings.cluster.version
    if requested is None:
        version = str(of_channel.get("defaultVersion") or "")
    else:
        # The newest that begins with it
        # (https://docs.cloud.google.com/kubernetes-engine/versioning#specifying_cluster_version).
        version = next(
            (
                known
                for known in versions
                if parse(known).parts[: len(parse(requested).parts)] == parse(requested).parts
            ),
            "",
        )
    if not version:
        has = ", ".join(versions[:_SHOWN]) or "none that it lists"
        return TOPIC.missing(
            f"release channel {channel} has no GKE {requested or 'version'} in {settings.location}; it has {has}",
            listing,
        )
    problem = too_old(settings, version)
    if problem:
        return TOPIC.missing(f"release channel {channel} gives a new cluster GKE {version}. {problem}", listing)
    features = [need.feature for need in needed(settings)]
    reason = f", and {features[0].name} needs {features[0].since}" if features else ""
    return TOPIC.fine(f"release channel {channel} gives a new cluster GKE {version}{reason}")
