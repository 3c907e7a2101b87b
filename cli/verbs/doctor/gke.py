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
    facts = {"cluster": cluster, "location": settings.location, "project": google.project}
    if status not in ("RUNNING", "RECONCILING"):
        reason = found.get("statusMessage") or "GKE does not say why"
        return TOPIC.found("broken", status=status, reason=reason, **facts)
    if version and (problem := too_old(settings, version)):
        return TOPIC.found("old-cluster", problem=problem, since=needed(settings)[0].feature.since, **facts)
    return TOPIC.found("cluster", cluster=cluster, status=status, version=version)


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
        parts = parse(requested).parts
        version = next((known for known in versions if parse(known).parts[: len(parts)] == parts), "")
    facts = {"channel": channel, "location": settings.location, "project": settings.project}
    if not version:
        has = ", ".join(versions[:_SHOWN]) or "none that it lists"
        return TOPIC.found("no-version", version=requested or "version", has=has, **facts)
    if problem := too_old(settings, version):
        return TOPIC.found("old-channel", version=version, problem=problem, **facts)
    features = [need.feature for need in needed(settings)]
    reason = f", and {features[0].name} needs {features[0].since}" if features else ""
    return TOPIC.found("channel", channel=channel, version=version, reason=reason)
