"""Values and claims that the pods of berths need to start, and features of GKE behind them.

Each check leaves an UnreachableError, for a cluster that does not answer, to its caller.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from berth.cli.reach.homes import CLAIMS
from berth.cli.reach.secret_values import (
    SecretPlace,
    grant_command,
    places_of_berth,
    why_not_synced,
)
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.berth import BerthInputs
from berth.components.cluster.api import NAMESPACES, SECRETS, ClusterApi, RefusedError, in_namespace
from berth.components.core.owner import namespace_of
from berth.components.core.words import counted
from berth.components.gke import SHARE_DRIVER, Addon
from berth.components.ray.secret_manager import SYNC_GROUP
from berth.components.ray.storage import BUCKET_DRIVER

CLUSTER, SECRET_VALUES, VOLUMES = Topic("cluster"), Topic("secrets"), Topic("volumes")

_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers/"
_FOR_MANY = {"ReadWriteMany", "ReadOnlyMany"}


class Feature(NamedTuple):
    """Add-on of GKE as a cluster shows it."""

    name: str
    path: str
    """Path that the API server has with the feature."""
    absent: str
    """Key of the finding without it."""


FEATURES: Mapping[Addon, Feature] = {
    "gcs_fuse": Feature("Cloud Storage FUSE driver", f"{_DRIVERS}{BUCKET_DRIVER}", "no-buckets"),
    "filestore": Feature("Filestore driver", f"{_DRIVERS}{SHARE_DRIVER}", "no-shares"),
    "secret_sync": Feature(
        "synchronization with Secret Manager", f"/apis/{SYNC_GROUP}", "no-secret-sync"
    ),
}


def check_features(api: ClusterApi, addons: Iterable[Addon]) -> Iterable[Finding]:
    """Check that a cluster has add-ons of GKE."""
    for feature in map(FEATURES.__getitem__, addons):
        try:
            there = api.get(feature.path)
        except RefusedError as error:
            yield CLUSTER.found("feature-unknown", name=feature.name, reason=error)
            continue
        part = feature.path.removeprefix(_DRIVERS).removeprefix("/apis/")
        yield CLUSTER.found("feature" if there else feature.absent, name=feature.name, part=part)


def check_berths(berths: Iterable[BerthInputs], api: ClusterApi) -> list[Finding]:
    """Check an environment's own berths: values that are there are counted."""
    berths = list(berths)
    by_berth = [check_secrets(berth, api) for berth in berths]
    findings = [finding for found in by_berth for finding in found if finding.state != "fine"]
    present = [sum(finding.state == "fine" for finding in found) for found in by_berth]
    if count := sum(present):
        variables, of = (
            counted(count, "secret variable"),
            counted(len(list(filter(None, present))), "berth"),
        )
        have = "has" if count == 1 else "have"
        findings.append(SECRET_VALUES.found("counted", variables=variables, berths=of, have=have))
    return [*findings, *(finding for berth in berths for finding in check_claims(berth, api))]


def check_berth(berth: BerthInputs, api: ClusterApi) -> list[Finding]:
    """Check the values and the claims of one berth."""
    return [*check_secrets(berth, api), *check_claims(berth, api)]


def check_secrets(berth: BerthInputs, api: ClusterApi) -> list[Finding]:
    """Report which secret values of a berth are missing."""
    return [_value(berth, place, api) for place in places_of_berth(berth).values()]


def _value(berth: BerthInputs, place: SecretPlace, api: ClusterApi) -> Finding:
    name, namespace, source = (
        berth.settings.name,
        namespace_of(berth.settings.name),
        place.secret_manager,
    )
    facts = {
        "what": f"{place.variable} of {name}",
        "command": f"berth secret set {name} {place.variable}",
    }
    if source:
        facts["command"] = grant_command(source, berth.project, namespace)
    try:
        secret = api.get(f"{in_namespace(namespace, SECRETS)}/{place.secret}")
    except RefusedError as error:
        return SECRET_VALUES.found("unknown", reason=error, **facts)
    if place.key in ((secret or {}).get("data") or {}):
        return SECRET_VALUES.found("value", secret=place.secret, **facts)
    if secret is None and not _is_there(api, namespace):
        return SECRET_VALUES.found(
            "read-later" if source else "later", source=source, namespace=namespace, **facts
        )
    if source:
        return SECRET_VALUES.found(
            "unread", reason=why_not_synced(api, namespace, place.secret, source), **facts
        )
    return SECRET_VALUES.found("no-value", secret=place.secret, key=place.key, **facts)


def _is_there(api: ClusterApi, namespace: str) -> bool:
    """Return whether a namespace exists; true for users who may not know."""
    try:
        return api.get(f"{NAMESPACES}/{namespace}") is not None
    except RefusedError:
        return True


def check_claims(berth: BerthInputs, api: ClusterApi) -> Iterable[Finding]:
    """Check that the claims that a berth's settings name are there, and are for several nodes."""
    namespace = namespace_of(berth.settings.name)
    for name, volume in berth.settings.volumes.items():
        if not volume.claim:
            continue
        facts = {
            "what": f"volume {name} of {berth.settings.name}",
            "claim": volume.claim,
            "namespace": namespace,
        }
        try:
            claim = api.get(f"{in_namespace(namespace, CLAIMS)}/{volume.claim}")
        except RefusedError as error:
            yield VOLUMES.found("unknown", reason=error, **facts)
            continue
        modes = ((claim or {}).get("spec") or {}).get("accessModes") or []
        key = "no-claim" if claim is None else "claim" if _FOR_MANY & set(modes) else "one-node"
        yield VOLUMES.found(key, modes=", ".join(modes), **facts)
