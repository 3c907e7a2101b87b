"""Routes from calls to their answers.

Every service account exists whose project does.

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1 (clusters,
    serverConfig), https://docs.cloud.google.com/resource-manager/reference/rest/v1/projects
    (testIamPermissions),
    https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services (batchGet), and
    https://docs.cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from berth.lab.google_api import compute
from berth.lab.google_api.quotas import quota_info
from berth.lab.google_api.simulated import Answer, Simulated, gke_name
from berth.lab.plugins.gcp.errors import GoogleApiError, not_found
from berth.lab.plugins.gcp.locations import REGIONS, ZONES

if TYPE_CHECKING:
    from berth.lab.home import Home

CHANNELS = ("RAPID", "REGULAR", "STABLE")

_NUMBER = "000000000000"
_P = r"projects/(?P<project>[^/:]+)"
_Z = rf"{_P}/zones/(?P<zone>[^/]+)"

_READS: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("compute", _P, compute.project),
    ("compute", rf"{_P}/regions/(?P<region>[^/]+)", compute.region),
    ("compute", rf"{_Z}/machineTypes/(?P<name>[^/]+)", compute.machine_type),
    ("compute", rf"{_Z}/acceleratorTypes/(?P<name>[^/]+)", compute.accelerator_type),
    ("compute", rf"{_Z}/reservations/(?P<name>[^/]+)", compute.reservation),
    (
        "compute",
        rf"{_Z}/reservations/(?P<name>[^/]+)/reservationBlocks/(?P<block>[^/]+)",
        compute.reservation_block,
    ),
    ("compute", rf"{_P}/global/networkProfiles/(?P<name>[^/]+)", compute.network_profile),
    ("compute", rf"{_P}/aggregated/instances", compute.instances),
    (
        "cloudquotas",
        rf"{_P}/locations/global/services/compute\.googleapis\.com/quotaInfos/(?P<quota>[^/]+)",
        quota_info,
    ),
)
_STORED = re.compile(rf"{_P}/(global/networks|regions/[^/]+/subnetworks)/[^/]+")
_CLUSTER = re.compile(rf"{_P}/locations/(?P<location>[^/]+)/clusters/[^/]+")
_CONFIG = re.compile(rf"{_P}/locations/(?P<location>[^/]+)/serverConfig")
_SERVICES = re.compile(rf"{_P}/services:batchGet")
_ACCOUNT = re.compile(r"projects/-/serviceAccounts/(?P<account>[^/:]+)(?P<test>:testIamPermissions)?")


def answer(home: Home, service: str, path: str, query: dict[str, list[str]], body: dict[str, Any]) -> Answer:
    """Return what Google would answer.

    Args:
        home: the lab.
        service: the API, such as `compute`.
        path: below the API's version.
        query: the parameters.
        body: of a POST; empty for a GET.

    Raises:
        GoogleApiError: it would refuse.
        ProviderError: the lab's files are not readable.
    """
    simulated = Simulated(home)
    for its_service, pattern, read in _READS:
        match = re.fullmatch(pattern, path)
        if its_service == service and match:
            simulated.project(match["project"], service)
            return read(simulated, **match.groupdict())
    other = _OTHERS.get(service)
    if other is None:
        raise not_found(path)
    return other(simulated, path, query, body)


def _networks(simulated: Simulated, path: str, _query: object, _body: object) -> Answer:
    match = _STORED.fullmatch(path)
    if match is None:
        raise not_found(path)
    simulated.project(match["project"], "compute")
    return compute.stored(simulated, path)


def _container(simulated: Simulated, path: str, _query: object, _body: object) -> Answer:
    match = _CLUSTER.fullmatch(path) or _CONFIG.fullmatch(path)
    if match is None or (match["location"] not in ZONES and match["location"] not in REGIONS):
        raise not_found(path)
    simulated.project(match["project"], "container")
    if _CONFIG.fullmatch(path):
        version = simulated.gke_version()
        channels = [{"channel": entry, "defaultVersion": version, "validVersions": [version]} for entry in CHANNELS]
        return {"defaultClusterVersion": version, "validMasterVersions": [version], "channels": channels}
    record = simulated.store.get(path)
    if record is None:
        raise GoogleApiError(404, f"Not found: {path}.", "notFound")
    version = gke_name(str(record.state.get("version", "")))
    return {"name": record.name, "status": "RUNNING", "currentMasterVersion": version}


def _projects(simulated: Simulated, path: str, _query: object, body: dict[str, Any]) -> Answer:
    match = re.fullmatch(rf"{_P}(?P<test>:testIamPermissions)?", path)
    if match is None:
        raise not_found(path)
    name = match["project"]
    project = simulated.project(name, "cloudresourcemanager")
    if match["test"]:
        return {"permissions": [entry for entry in body.get("permissions") or [] if project.may(entry)]}
    return {"projectId": name, "projectNumber": _NUMBER, "lifecycleState": "ACTIVE"}


def _services(simulated: Simulated, path: str, query: dict[str, list[str]], _body: object) -> Answer:
    match = _SERVICES.fullmatch(path)
    project = simulated.conditions.project(match["project"]) if match else None
    if project is None:
        raise GoogleApiError(403, f"Permission denied on {path.split('/services', maxsplit=1)[0]}.", "forbidden")
    names = query.get("names") or []
    return {
        "services": [
            {"name": name, "state": "ENABLED" if name.rsplit("/", 1)[-1] in project.services else "DISABLED"}
            for name in names
        ]
    }


def _accounts(simulated: Simulated, path: str, _query: object, body: dict[str, Any]) -> Answer:
    """Service accounts: each is there whose address names a project that is."""
    match = _ACCOUNT.fullmatch(path)
    if match is None:
        raise not_found(path)
    project = simulated.project(match["account"].partition("@")[2].split(".")[0], "iam")
    if match["test"]:
        return {"permissions": [entry for entry in body.get("permissions") or [] if project.may(entry)]}
    return {"email": match["account"]}


_OTHERS: dict[str, Callable[[Simulated, str, dict[str, list[str]], dict[str, Any]], Answer]] = {
    "compute": _networks,
    "container": _container,
    "cloudresourcemanager": _projects,
    "serviceusage": _services,
    "iam": _accounts,
}
