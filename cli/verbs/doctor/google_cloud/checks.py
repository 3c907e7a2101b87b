"""Checks of an environment's place in Google Cloud, run side by side."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.cli.verbs.doctor.google_cloud.address_ranges import NETWORKS
from berth.cli.verbs.doctor.google_cloud.apis import APIS, check_apis, required_apis
from berth.cli.verbs.doctor.google_cloud.gke_version import GKE, check_gke
from berth.cli.verbs.doctor.google_cloud.networks import check_networks
from berth.cli.verbs.doctor.google_cloud.permissions import PERMISSIONS, check_permissions
from berth.cli.verbs.doctor.google_cloud.project import check_project, no_project
from berth.cli.verbs.doctor.google_cloud.quotas import QUOTA, check_quotas
from berth.cli.verbs.doctor.google_cloud.reservations import RESERVATIONS, check_reservations
from berth.cli.verbs.doctor.google_cloud.running_machines import (
    RunningMachine,
    RunningMachines,
    running_machines,
)
from berth.cli.verbs.doctor.google_cloud.shared_vpc import (
    SHARED_VPC,
    check_shared_vpc,
    host_project,
)
from berth.cli.verbs.doctor.google_cloud.zones import MACHINES, check_zones
from berth.cli.verbs.doctor.state import KMS, STATE, check_bucket, check_key
from berth.stacks.files.stack_file import pulumi_keys
from berth.stacks.load.stack import Environment
from berth.stacks.settings.environment import EnvironmentSettings

CREDENTIALS = Topic("credentials")
REACH = Topic("Google Cloud")


@dataclass(frozen=True)
class CloudPlace:
    """Place of an environment in Google Cloud.

    Attributes:
        stack: name of the environment's stack.
        settings: the environment's settings.
        bucket: the Cloud Storage bucket of the stack's state; empty for another kind of backend.
        provider: the provider of the key that encrypts the stack's secrets; empty for a passphrase.
    """

    stack: str
    settings: EnvironmentSettings
    bucket: str
    provider: str

    @property
    def cluster(self) -> str:
        """Name of the GKE cluster."""
        return self.settings.cluster.name or self.stack


@dataclass(frozen=True)
class CloudAccess:
    """Access to Google Cloud that checks share.

    Attributes:
        google: client with the caller's credentials.
        listed: the machines that run in the project, once they are listed.
    """

    google: GoogleClient
    listed: Future[list[RunningMachine]]

    @property
    def machines(self) -> RunningMachines:
        """Machines that run in the project; None without the right to list them.

        Raises:
            GoogleError: the API is not enabled.
        """
        try:
            return self.listed.result()
        except GoogleError as error:
            if error.kind == "disabled":
                raise
            return None


CloudCheck = Callable[[CloudPlace, CloudAccess], Iterable[DoctorFinding]]


def connect(project: str) -> tuple[GoogleClient | None, list[DoctorFinding]]:
    """Check that Google Cloud can be asked about a project.

    Returns:
        Google Cloud, None without credentials that work; the findings, the last of which is
        `missing` if nothing more can be asked.
    """
    try:
        google = GoogleClient(project)
    except GoogleError as error:
        return None, [_no_access(error)]
    account = f" ({google.account})" if google.account else ""
    works = CREDENTIALS.fine(f"the Google credentials work{account}")
    try:
        return google, [works, check_project(google)]
    except GoogleError as error:
        if error.kind == "disabled":  # reported with the other APIs; the rest can be asked
            return google, [works]
        if error.kind in ("credentials", "unreachable"):
            return google, [_no_access(error)]
        return google, [works, no_project(project, error)]


def _no_access(error: GoogleError) -> DoctorFinding:
    topic = REACH if error.kind == "unreachable" else CREDENTIALS
    return topic.missing(error.problem, error.remedy)


def check_google_cloud(
    pool: ThreadPoolExecutor,
    loaded: Environment,
    bucket: str,
    google: GoogleClient | None,
    connected: DoctorFinding,
) -> list[DoctorFinding]:
    """Check an environment's place in Google Cloud.

    Args:
        pool: threads, in which the checks run side by side.
        loaded: the environment.
        bucket: the Cloud Storage bucket of the stack's state; empty for another kind of backend.
        google: Google Cloud; None without credentials that work.
        connected: last finding of `connect`; if it is `missing`, nothing more can be asked.
    """
    provider = pulumi_keys(loaded.stack).get("secretsprovider", "")
    place = CloudPlace(loaded.stack, loaded.settings, bucket, provider)
    checks = _checks_of(place)
    if google is None or connected.state == "missing":
        return [topic.unchecked(f"not checked: see {connected.topic}") for topic, _ in checks]
    access = CloudAccess(google, pool.submit(running_machines, google, place.cluster))
    outcomes = [pool.submit(_outcome, topic, check, place, access) for topic, check in checks]
    findings = []
    for outcome in outcomes:
        findings += outcome.result()
    return findings


def _checks_of(place: CloudPlace) -> list[tuple[Topic, CloudCheck]]:
    """Return the checks that a place needs."""
    checks: list[tuple[Topic, CloudCheck]] = [
        (APIS, _apis),
        (PERMISSIONS, _permissions),
        (MACHINES, _zones),
    ]
    if place.settings.network.existing:
        checks.append((NETWORKS, _networks))
    if host_project(place.settings):
        checks.append((SHARED_VPC, _shared_vpc))
    if any(pool.capacity.kind == "reservation" for pool in place.settings.pools.values()):
        checks.append((RESERVATIONS, _reservations))
    checks += [(QUOTA, _quotas), (GKE, _gke)]
    if place.bucket:
        checks.append((STATE, _bucket))
    if place.provider:
        checks.append((STATE, _key))
    return checks


def _apis(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    by_key = place.provider.startswith(KMS)
    required = required_apis(place.settings, bucket=bool(place.bucket), key=by_key)
    return check_apis(access.google, required)


def _permissions(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_permissions(access.google, place.settings)


def _zones(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_zones(access.google, place.settings)


def _networks(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_networks(access.google, place.settings)


def _shared_vpc(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_shared_vpc(access.google, place.settings)


def _reservations(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_reservations(access.google, place.settings, access.machines)


def _quotas(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return check_quotas(access.google, place.settings, access.machines)


def _gke(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return [check_gke(access.google, place.settings, place.cluster)]


def _bucket(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return [check_bucket(access.google, place.bucket)]


def _key(place: CloudPlace, access: CloudAccess) -> Iterable[DoctorFinding]:
    return [check_key(access.google, place.provider)]


def _outcome(
    topic: Topic, check: CloudCheck, place: CloudPlace, access: CloudAccess
) -> list[DoctorFinding]:
    """Return the findings of a check, or why it could not be made."""
    try:
        return list(check(place, access))
    except GoogleError as error:
        # A disabled API is reported with the APIs.
        remedy = "" if error.kind == "disabled" else error.remedy
        return [topic.unchecked(f"not checked: {error.problem}", remedy)]
