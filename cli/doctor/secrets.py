"""Secret values that a berth's pods need to start."""

from __future__ import annotations

from berth.cli.doctor.findings import Finding, Topic
from berth.cli.secret_values import places_of
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NAMESPACES, SECRETS, ClusterApi, RefusedError, within
from berth.components.core.owner import namespace_of

SECRETS_OF_BERTH = Topic("secrets")


def check_secrets(berth: BerthInputs, api: ClusterApi) -> list[Finding]:
    """Report which secret values of a berth are missing.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    name = berth.settings.name
    places = places_of(berth.manifests.main) if berth.manifests else {}
    namespace = namespace_of(name)
    findings = []
    for place in places.values():
        command = f"berth secret set {name} {place.variable}"
        try:
            secret = api.get(f"{within(namespace, SECRETS)}/{place.secret}")
        except RefusedError as error:
            findings.append(SECRETS_OF_BERTH.unchecked(f"{place.variable}: {error}"))
            continue
        if place.key in ((secret or {}).get("data") or {}):
            findings.append(SECRETS_OF_BERTH.fine(f"{place.variable} has a value, in Secret {place.secret}"))
        elif secret is None and not _is_there(api, namespace):
            text = f"{place.variable} can be set once the first update has created namespace {namespace}"
            findings.append(SECRETS_OF_BERTH.unchecked(text, command))
        else:
            text = f"{place.variable} has no value (Secret {place.secret}, key {place.key}): pods cannot start"
            findings.append(SECRETS_OF_BERTH.missing(text, command))
    return findings


def _is_there(api: ClusterApi, namespace: str) -> bool:
    """Return whether a namespace exists; true for users who may not know."""
    try:
        return api.get(f"{NAMESPACES}/{namespace}") is not None
    except RefusedError:
        return True
