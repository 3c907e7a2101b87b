"""GKE: the cluster's version, or the one that it would get."""

from __future__ import annotations

from typing import Any

from berth.cli.doctor.findings import Finding, Topic
from berth.cli.doctor.google import Google
from berth.components.gke import needed, parse, too_old
from berth.stacks.settings.environment import EnvironmentSettings

TOPIC = Topic("GKE")

_SHOWN = 4


def check(google: Google, settings: EnvironmentSettings, cluster: str) -> list[Finding]:
    """The cluster's version, or where there is none yet the one that its release channel gives.

    Args:
        google: the project.
        settings: of the environment.
        cluster: the cluster's name.
    """
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
        upgrade = f"gcloud container clusters upgrade {cluster} --master --location={settings.location} --project={google.project}"
        return TOPIC.missing(
            f"cluster {cluster}: {problem}", f"{upgrade} --cluster-version={needed(settings)[0].feature.since}"
        )
    return TOPIC.fine(f"cluster {cluster} is there ({status}), with GKE {version}")


def _to_be_made(config: dict[str, Any], settings: EnvironmentSettings) -> Finding:
    channel = settings.cluster.release_channel
    of_channel: dict[str, Any] = next(
        (each for each in config.get("channels") or [] if each.get("channel") == channel), {}
    )
    versions = [str(each) for each in of_channel.get("validVersions") or []]
    listing = (
        f"gcloud container get-server-config --location={settings.location} --project={settings.project}"
        f' --flatten=channels --filter="channels.channel={channel}"'
    )
    wanted = settings.cluster.version
    if wanted is None:
        version = str(of_channel.get("defaultVersion") or "")
    else:
        # The newest that begins with it
        # (https://docs.cloud.google.com/kubernetes-engine/versioning#specifying_cluster_version).
        version = next(
            (each for each in versions if parse(each).parts[: len(parse(wanted).parts)] == parse(wanted).parts), ""
        )
    if not version:
        has = ", ".join(versions[:_SHOWN]) or "none that it tells"
        return TOPIC.missing(
            f"release channel {channel} has no GKE {wanted or 'version'} in {settings.location}; it has {has}", listing
        )
    problem = too_old(settings, version)
    if problem:
        return TOPIC.missing(f"{problem} (a new cluster gets it from release channel {channel})", listing)
    features = [need.feature for need in needed(settings)]
    reason = f", and {features[0].name} needs {features[0].since}" if features else ""
    return TOPIC.fine(f"release channel {channel} gives a new cluster GKE {version}{reason}")
