"""Checks of the project: it exists, its APIs are enabled, and the caller has the permissions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from berth.cli.verbs.doctor import permissions
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core.types import OWN_ACCOUNT
from berth.stacks.settings.environment import EnvironmentSettings

PROJECT, APIS, PERMISSIONS = Topic("project"), Topic("APIs"), Topic("permissions")

ADVICE = {
    "cloudquotas.googleapis.com": "only this API has the limits of the newer GPUs, so they are not checked",
}
"""APIs that only these checks use, with the loss without them."""


def check_project(google: Google) -> Finding:
    """Check that the project exists and is active."""
    found = google.get("cloudresourcemanager", f"projects/{google.project}")
    state = found.get("lifecycleState", "ACTIVE")
    if state != "ACTIVE":
        undelete = f"gcloud projects undelete {google.project}" if state == "DELETE_REQUESTED" else ""
        return PROJECT.missing(f"project {google.project} is {state}", undelete)
    number = found.get("projectNumber")
    return PROJECT.fine(f"project {google.project} exists" + (f" ({number})" if number else ""))


def no_project(project: str, error: GoogleError) -> Finding:
    """Return why a project cannot be checked; Google answers 403 also for one that is missing."""
    if error.kind in ("absent", "forbidden") and not error.remedy:
        return PROJECT.missing(
            f"there is no project {project}, or you may not see it",
            f"gcloud projects create {project}   # or ask for access",
        )
    return PROJECT.missing(error.problem, error.remedy)


def apis(settings: EnvironmentSettings, *, bucket: bool, key: bool) -> list[str]:
    """Return the APIs that have to be enabled.

    Args:
        settings: settings of the environment.
        bucket: the state is in a bucket.
        key: a Cloud KMS key encrypts the stack's secrets.
    """
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
    names = [f"projects/{google.project}/services/{api}" for api in (*needed, *ADVICE)]
    answer = google.get("serviceusage", f"projects/{google.project}/services:batchGet", names=names)
    enabled = {
        str(api["name"]).rsplit("/", 1)[-1] for api in answer.get("services", []) if api.get("state") == "ENABLED"
    }
    off = [api for api in needed if api not in enabled]
    if off:
        verb = "is" if len(off) == 1 else "are"
        yield APIS.missing(f"{', '.join(off)} {verb} not enabled", _enable(google.project, off))
    if len(off) < len(needed):
        yield APIS.fine(f"enabled: {', '.join(api for api in needed if api in enabled)}")
    for api, loss in ADVICE.items():
        if api not in enabled:
            yield APIS.unchecked(f"{api} is not enabled: {loss}", _enable(google.project, [api]))


def _enable(project: str, apis: Iterable[str]) -> str:
    return f"gcloud services enable {' '.join(apis)} --project={project}"


def check_permissions(google: Google, settings: EnvironmentSettings) -> Iterable[Finding]:
    """Check the caller's permissions in the project, and on the nodes' service account."""
    given = settings.cluster.node_service_account
    own, account = given == OWN_ACCOUNT, None if given == OWN_ACCOUNT else given
    needed = permissions.needed(
        networks=settings.network.existing is None, node_account=account is not None, own_account=own
    )
    if lacking := google.lacking("cloudresourcemanager", f"projects/{google.project}", needed):
        yield _lacking(google, lacking, len(needed))
    else:
        yield PERMISSIONS.fine(f"you have all {len(needed)} permissions that an update needs")
    if account:
        try:
            yield _node_account(google, account)
        except GoogleError as error:
            # An API that is not enabled is a finding of its own.
            if error.kind != "disabled":
                raise
            yield PERMISSIONS.unchecked(f"service account {account} is not checked: {error.problem}")


_SHOWN = 6


def _lacking(google: Google, lacking: list[str], of: int) -> Finding:
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    grants = [
        f"gcloud projects add-iam-policy-binding {google.project} --member={_member(google)} --role={role}"
        + permissions.condition_of(role)
        for role in permissions.roles_of(lacking)
    ]
    return PERMISSIONS.missing(
        f"you lack {len(lacking)} of {of} permissions: {', '.join(lacking[:_SHOWN])}{more}",
        "\n".join(grants),
    )


def _node_account(google: Google, account: str) -> Finding:
    path = f"projects/-/serviceAccounts/{account}"
    if google.exists("iam", path) is None:
        name, _, domain = account.partition("@")
        return PERMISSIONS.missing(
            f"there is no service account {account}, as which nodes are to run",
            f"gcloud iam service-accounts create {name} --project={domain.split('.', 1)[0]}",
        )
    act = "iam.serviceAccounts.actAs"
    if not google.lacking("iam", path, [act]):
        return PERMISSIONS.fine(f"you may let nodes run as {account}")
    return PERMISSIONS.missing(
        f"you may not let nodes run as {account}: you lack {act}",
        f"gcloud iam service-accounts add-iam-policy-binding {account} --member={_member(google)}"
        f" --role={permissions.role_of(act)}",
    )


def _member(google: Google) -> str:
    if google.account:
        return f"serviceAccount:{google.account}"
    return '"user:$(gcloud config get account)"'
