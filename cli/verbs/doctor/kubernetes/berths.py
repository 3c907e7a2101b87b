"""Checks of what the pods of berths need to start: values of secrets, and claims of volumes.

Each check leaves an UnreachableError, for a cluster that does not answer, to its caller.
"""

from collections.abc import Iterable

from berth.cli.reach.homes import CLAIMS
from berth.cli.reach.secret_manager import grant_command, why_not_synced
from berth.cli.reach.secret_places import SecretPlace, places_of_berth
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NAMESPACES, SECRETS, ClusterApi, RefusedError, in_namespace
from berth.components.core.owner import namespace_of
from berth.components.core.words import counted

SECRET_VALUES = Topic("secrets")
VOLUMES = Topic("volumes")

_FOR_MANY_NODES = {"ReadWriteMany", "ReadOnlyMany"}


def check_berths(berths: Iterable[BerthInputs], api: ClusterApi) -> list[DoctorFinding]:
    """Check an environment's own berths: values that are there are counted."""
    findings: list[DoctorFinding] = []
    claims: list[DoctorFinding] = []
    variables = 0
    complete = 0
    for berth in berths:
        values = check_secrets(berth, api)
        present = sum(value.state == "fine" for value in values)
        variables += present
        complete += present > 0
        findings += [value for value in values if value.state != "fine"]
        claims += check_claims(berth, api)
    if variables:
        have = "has" if variables == 1 else "have"
        findings.append(
            SECRET_VALUES.fine(
                f"{counted(variables, 'secret variable')} of {counted(complete, 'berth')} {have} a"
                " value"
            )
        )
    return findings + claims


def check_berth(berth: BerthInputs, api: ClusterApi) -> list[DoctorFinding]:
    """Check the values and the claims of one berth."""
    return [*check_secrets(berth, api), *check_claims(berth, api)]


def check_secrets(berth: BerthInputs, api: ClusterApi) -> list[DoctorFinding]:
    """Return which secret values of a berth are missing."""
    return [_check_value(berth, place, api) for place in places_of_berth(berth).values()]


def _check_value(berth: BerthInputs, place: SecretPlace, api: ClusterApi) -> DoctorFinding:
    name = berth.settings.name
    namespace = namespace_of(name)
    source = place.secret_manager
    what = f"{place.variable} of {name}"
    if source:
        command = grant_command(source, berth.project, namespace)
    else:
        command = f"berth secret set {name} {place.variable}"
    try:
        secret = api.get(f"{in_namespace(namespace, SECRETS)}/{place.secret}")
    except RefusedError as error:
        return SECRET_VALUES.unchecked(f"{what}: {error}")
    if place.key in ((secret or {}).get("data") or {}):
        return SECRET_VALUES.fine(f"{what} has a value, in Secret {place.secret}")
    if secret is None and not _has_namespace(api, namespace):
        later = (
            f"is read from {source} once GKE has the right to"
            if source
            else f"can be set once the first update has created namespace {namespace}"
        )
        return SECRET_VALUES.unchecked(f"{what} {later}", command)
    if source:
        reason = why_not_synced(api, namespace, place.secret, source)
        return SECRET_VALUES.missing(
            f"{what} has no value, so pods cannot start: {reason}", command
        )
    return SECRET_VALUES.missing(
        f"{what} has no value (Secret {place.secret}, key {place.key}): pods cannot start", command
    )


def _has_namespace(api: ClusterApi, namespace: str) -> bool:
    """Return whether a namespace exists; True for users who may not know."""
    try:
        return api.get(f"{NAMESPACES}/{namespace}") is not None
    except RefusedError:
        return True


def check_claims(berth: BerthInputs, api: ClusterApi) -> Iterable[DoctorFinding]:
    """Check that the claims that a berth's settings name are there, and are for several nodes."""
    namespace = namespace_of(berth.settings.name)
    for name, volume in berth.settings.volumes.items():
        if volume.claim:
            what = f"volume {name} of {berth.settings.name}"
            yield _check_claim(api, what, namespace, volume.claim)


def _check_claim(api: ClusterApi, what: str, namespace: str, name: str) -> DoctorFinding:
    try:
        claim = api.get(f"{in_namespace(namespace, CLAIMS)}/{name}")
    except RefusedError as error:
        return VOLUMES.unchecked(f"{what}: {error}")
    list_command = f"kubectl get persistentvolumeclaims --namespace={namespace}"
    if claim is None:
        return VOLUMES.missing(
            f"{what} mounts claim {name}, which namespace {namespace} does not have: pods cannot"
            " start",
            list_command,
        )
    modes = (claim.get("spec") or {}).get("accessModes") or []
    if not _FOR_MANY_NODES & set(modes):
        return VOLUMES.missing(
            f"{what} mounts claim {name}, whose access mode {', '.join(modes)} is for one node:"
            " pods on other nodes cannot start",
            f"{list_command} --output=wide   # take a claim with ReadWriteMany",
        )
    return VOLUMES.fine(f"{what} mounts claim {name} ({', '.join(modes)})")
