"""Secret values that the pods of berths need to start."""

from __future__ import annotations

from collections.abc import Iterable

from berth.cli.reach.secret_manager import grant, unread
from berth.cli.reach.secret_values import Place, places_of_berth
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NAMESPACES, SECRETS, ClusterApi, RefusedError, within
from berth.components.core.owner import namespace_of
from berth.components.core.words import counted

SECRETS_OF_BERTH = Topic("secrets")


def check_secrets(berth: BerthInputs, api: ClusterApi) -> list[Finding]:
    """Report which secret values of a berth are missing.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    return [_check(berth, place, api) for place in places_of_berth(berth).values()]


def check_secrets_of_all(berths: Iterable[BerthInputs], api: ClusterApi) -> list[Finding]:
    """Report which secret values of an environment's own berths are missing; count the others.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    findings, present, owners = [], 0, 0
    for berth in berths:
        of_berth = check_secrets(berth, api)
        rest = [finding for finding in of_berth if finding.state != "fine"]
        findings += rest
        present += len(of_berth) - len(rest)
        owners += len(of_berth) > len(rest)
    if present:
        have = "has a value" if present == 1 else "have a value"
        text = f"{counted(present, 'secret variable')} of {counted(owners, 'berth')} {have}"
        findings.append(SECRETS_OF_BERTH.fine(text))
    return findings


def _check(berth: BerthInputs, place: Place, api: ClusterApi) -> Finding:
    name, namespace = berth.settings.name, namespace_of(berth.settings.name)
    what = f"{place.variable} of {name}"
    command = f"berth secret set {name} {place.variable}"
    if place.secret_manager:
        command = grant(place.secret_manager, berth.project, namespace)
    try:
        secret = api.get(f"{within(namespace, SECRETS)}/{place.secret}")
    except RefusedError as error:
        return SECRETS_OF_BERTH.unchecked(f"{what}: {error}")
    if place.key in ((secret or {}).get("data") or {}):
        return SECRETS_OF_BERTH.fine(f"{what} has a value, in Secret {place.secret}")
    if secret is None and not _is_there(api, namespace):
        text = f"{what} can be set once the first update has created namespace {namespace}"
        if place.secret_manager:
            text = f"{what} is read from {place.secret_manager} once GKE has the right to"
        return SECRETS_OF_BERTH.unchecked(text, command)
    if place.secret_manager:
        reason = unread(api, namespace, place.secret, place.secret_manager)
        return SECRETS_OF_BERTH.missing(f"{what} has no value, so pods cannot start: {reason}", command)
    text = f"{what} has no value (Secret {place.secret}, key {place.key}): pods cannot start"
    return SECRETS_OF_BERTH.missing(text, command)


def _is_there(api: ClusterApi, namespace: str) -> bool:
    """Return whether a namespace exists; true for users who may not know."""
    try:
        return api.get(f"{NAMESPACES}/{namespace}") is not None
    except RefusedError:
        return True
