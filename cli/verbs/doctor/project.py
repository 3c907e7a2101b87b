"""Checks of the project: it exists, its APIs are enabled, and the caller has the permissions."""

from collections.abc import Iterable, Sequence

from berth.cli.verbs.doctor import permissions
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core.types import OWN_ACCOUNT
from berth.components.core.words import are
from berth.stacks.settings.environment import EnvironmentSettings

PROJECT, APIS, PERMISSIONS = Topic("project"), Topic("APIs"), Topic("permissions")

_LIMITS_API = "cloudquotas.googleapis.com"
"""API that only these checks use."""
_SHOWN = 6


def check_project(google: Google) -> Finding:
    """Check that the project exists and is active."""
    found = google.get("cloudresourcemanager", f"projects/{google.project}")
    state = found.get("lifecycleState", "ACTIVE")
    if state == "DELETE_REQUESTED":
        return PROJECT.found("deleted", project=google.project)
    if state != "ACTIVE":
        return PROJECT.found("inactive", project=google.project, state=state)
    number = found.get("projectNumber")
    return PROJECT.found("exists", project=google.project, number=f" ({number})" if number else "")


def no_project(project: str, error: GoogleError) -> Finding:
    """Return why a project cannot be checked; Google answers 403 also for one that is missing."""
    if error.kind in ("absent", "forbidden") and not error.remedy:
        return PROJECT.found("absent", project=project)
    return PROJECT.missing(error.problem, error.remedy)


def apis(settings: EnvironmentSettings, *, bucket: bool, key: bool) -> list[str]:
    """Return the APIs that have to be enabled, for a state's bucket and a Cloud KMS key too."""
    names = [
        "cloudresourcemanager",
        "compute",
        "container",
        "iam",
        *(["storage"] if bucket else []),
        *(["cloudkms"] if key else []),
        *(["file"] if settings.filestore else []),
        *(["secretmanager"] if settings.secret_sync else []),
    ]
    return [f"{name}.googleapis.com" for name in names]


def check_apis(google: Google, needed: Sequence[str]) -> Iterable[Finding]:
    """Check that APIs are enabled."""
    # At most 30 names a call
    # (https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/batchGet).
    project = google.project
    names = [f"projects/{project}/services/{api}" for api in (*needed, _LIMITS_API)]
    answer = google.get("serviceusage", f"projects/{project}/services:batchGet", names=names)
    enabled = {
        str(api["name"]).rsplit("/", 1)[-1] for api in answer.get("services", []) if api.get("state") == "ENABLED"
    }
    if off := [api for api in needed if api not in enabled]:
        yield APIS.found("off", apis=", ".join(off), are=are(len(off)), names=" ".join(off), project=project)
    if on := [api for api in needed if api in enabled]:
        yield APIS.found("on", apis=", ".join(on))
    if _LIMITS_API not in enabled:
        yield APIS.found("no-limits", names=_LIMITS_API, project=project)


def check_permissions(google: Google, settings: EnvironmentSettings) -> Iterable[Finding]:
    """Check the caller's permissions in the project, and on the nodes' service account."""
    given = settings.cluster.node_service_account
    own, account = given == OWN_ACCOUNT, None if given == OWN_ACCOUNT else given
    needed = permissions.needed(
        networks=settings.network.existing is None,
        node_account=account is not None,
        own_account=own,
        by_name=bool(settings.cluster.dns_endpoint),
    )
    if lacking := google.lacking("cloudresourcemanager", f"projects/{google.project}", needed):
        yield _lacking(google, lacking, len(needed))
    else:
        yield PERMISSIONS.found("all", count=len(needed))
    if account:
        try:
            yield _node_account(google, account)
        except GoogleError as error:
            # An API that is not enabled is a finding of its own.
            if error.kind != "disabled":
                raise
            yield PERMISSIONS.found("account-unknown", account=account, reason=error.problem)


def _lacking(google: Google, lacking: list[str], of: int) -> Finding:
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    grants = [
        f"gcloud projects add-iam-policy-binding {google.project} --member={_member(google)} --role={role}"
        + permissions.condition_of(role)
        for role in permissions.roles_of(lacking)
    ]
    shown = f"{', '.join(lacking[:_SHOWN])}{more}"
    return PERMISSIONS.found("lacking", count=len(lacking), of=of, shown=shown, grants="\n".join(grants))


def _node_account(google: Google, account: str) -> Finding:
    path = f"projects/-/serviceAccounts/{account}"
    if google.exists("iam", path) is None:
        name, _, domain = account.partition("@")
        return PERMISSIONS.found("no-account", account=account, name=name, project=domain.split(".", 1)[0])
    act = permissions.ACT_AS
    if not google.lacking("iam", path, [act]):
        return PERMISSIONS.found("account", account=account)
    role = permissions.role_of(act)
    return PERMISSIONS.found("no-act-as", account=account, permission=act, member=_member(google), role=role)


def _member(google: Google) -> str:
    if google.account:
        return f"serviceAccount:{google.account}"
    return '"user:$(gcloud config get account)"'
