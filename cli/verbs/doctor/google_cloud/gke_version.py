"""Checks of GKE's version: that of a cluster, or the one that its release channel gives it."""

from collections.abc import Sequence
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.gke import needed_features, parse_gke_version, why_too_old
from berth.stacks.settings.environment import EnvironmentSettings

GKE = Topic("GKE")

_SHOWN = 4


def check_gke(google: GoogleClient, settings: EnvironmentSettings, cluster: str) -> DoctorFinding:
    """Check the version of a cluster; if there is none yet, that of its release channel.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    location = f"projects/{google.project}/locations/{settings.location}"
    path = f"{location}/clusters/{cluster}"
    answer = google.exists("container", path, fields="status,statusMessage,currentMasterVersion")
    if answer is not None:
        return _check_cluster(google, settings, cluster, answer)
    config = google.get("container", f"{location}/serverConfig")
    return _check_channel(settings, _channel(config, settings.cluster.release_channel))


def _check_cluster(
    google: GoogleClient, settings: EnvironmentSettings, cluster: str, answer: dict[str, Any]
) -> DoctorFinding:
    place = f"--location={settings.location} --project={google.project}"
    version = str(answer.get("currentMasterVersion", ""))
    status = str(answer.get("status", ""))
    if status not in ("RUNNING", "RECONCILING"):
        reason = answer.get("statusMessage") or "GKE does not say why"
        return GKE.missing(
            f"cluster {cluster} is {status}: {reason}",
            f"gcloud container clusters describe {cluster} {place}",
        )
    problem = why_too_old(settings, version) if version else None
    if problem:
        since = needed_features(settings)[0].feature.since
        return GKE.missing(
            f"cluster {cluster}: {problem}",
            f"gcloud container clusters upgrade {cluster} --master {place}"
            f" --cluster-version={since}",
        )
    return GKE.fine(f"cluster {cluster} exists ({status}), with GKE {version}")


def _channel(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a release channel of GKE's configuration; empty if it lists none of this name."""
    for channel in config.get("channels") or []:
        if channel.get("channel") == name:
            return dict(channel)
    return {}


def _check_channel(settings: EnvironmentSettings, channel: dict[str, Any]) -> DoctorFinding:
    name = settings.cluster.release_channel
    versions = [str(version) for version in channel.get("validVersions") or []]
    requested = settings.cluster.version
    if requested is None:
        version = str(channel.get("defaultVersion") or "")
    else:
        version = _newest_of(versions, requested)
    describe_channel = (
        f"gcloud container get-server-config --location={settings.location}"
        f' --project={settings.project} --flatten=channels --filter="channels.channel={name}"'
    )
    if not version:
        listed = ", ".join(versions[:_SHOWN]) or "none that it lists"
        return GKE.missing(
            f"release channel {name} has no GKE {requested or 'version'} in {settings.location}; it"
            f" has {listed}",
            describe_channel,
        )
    problem = why_too_old(settings, version)
    if problem:
        return GKE.missing(
            f"release channel {name} gives a new cluster GKE {version}. {problem}",
            describe_channel,
        )
    reason = ""
    features = [need.feature for need in needed_features(settings)]
    if features:
        reason = f", and {features[0].name} needs {features[0].since}"
    return GKE.fine(f"release channel {name} gives a new cluster GKE {version}{reason}")


def _newest_of(versions: Sequence[str], requested: str) -> str:
    """Return the newest version that begins with the requested one; empty if there is none.

    Source: https://docs.cloud.google.com/kubernetes-engine/versioning#specifying_cluster_version
    """
    parts = parse_gke_version(requested).parts
    for version in versions:
        if parse_gke_version(version).parts[: len(parts)] == parts:
            return version
    return ""
