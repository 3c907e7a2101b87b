"""Checks of the project: it exists, its APIs are enabled, and the caller has the permissions."""

from collections.abc import Iterable, Mapping, Sequence

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.google import Google, GoogleError
from berth.components.core import fast_yaml
from berth.components.core.types import OWN_ACCOUNT
from berth.components.core.words import first_names, is_or_are
from berth.components.gke import NODE_ROLES
from berth.stacks.settings.environment import EnvironmentSettings

_TABLES = fast_yaml.load_beside(__file__, "permissions.yaml")

ROLES: dict[str, str] = _TABLES["roles"]
"""Smallest of Google's roles with a permission, by its prefix; the first match counts."""

PROJECT, APIS, PERMISSIONS = Topic("project"), Topic("APIs"), Topic("permissions")

_LIMITS_API = "cloudquotas.googleapis.com"
"""API that only these checks use."""
_SHOWN = 6


def _permissions(resources: Mapping[str, str]) -> list[str]:
    return [f"{resource}.{verb}" for resource, verbs in resources.items() for verb in verbs.split()]


OF_TYPE = {kind: _permissions(resources) for kind, resources in _TABLES["of_type"].items()}
"""Permissions that create, change and delete each type of resource that the program registers."""

ON_THE_CLUSTER = _permissions(_TABLES["on_the_cluster"])
"""Permissions for operators, berths and clusters."""

CONNECT = "container.clusters.connect"
"""Permission to reach a control plane by its DNS name."""

ACT_AS = "iam.serviceAccounts.actAs"
_OWN_ACCOUNT = ("gcp:serviceaccount/", "gcp:projects/")


def needed_for(
    *, networks: bool, node_account: bool, own_account: bool = False, by_name: bool = False
) -> list[str]:
    """Return the permissions that an update needs in the project.

    A node account of the settings is checked itself; the program may create its own one.
    `by_name` says that kubeconfigs have the control plane's DNS name.
    """
    prefixes = (
        "gcp:container/",
        *(["gcp:compute/"] if networks else []),
        *(_OWN_ACCOUNT if own_account else ()),
    )
    types = [kind for kind in OF_TYPE if kind.startswith(prefixes)]
    permissions = {permission for kind in types for permission in OF_TYPE[kind]} | set(
        ON_THE_CLUSTER
    )
    permissions |= {CONNECT} if by_name else set()
    return sorted(permissions - ({ACT_AS} if node_account else set()))


def role_of(permission: str) -> str:
    """Return the smallest of Google's own roles with a permission."""
    return next(role for beginning, role in ROLES.items() if permission.startswith(beginning))


def roles_of(permissions: Iterable[str]) -> list[str]:
    """Return roles that together have some permissions."""
    return sorted({role_of(permission) for permission in permissions})


def condition_of(role: str) -> str:
    """Return the option that limits a role: who may set the project's policy could do anything."""
    if role != role_of("resourcemanager.projects.setIamPolicy"):
        return ""
    granted = ", ".join(f"'{name}'" for name in NODE_ROLES)
    attribute = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"
    return f' --condition="^:^title=berth-nodes:expression={attribute}.hasOnly([{granted}])"'


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
    used = {
        "storage": bucket,
        "containerfilesystem": any(pool.streams_images for pool in settings.pools.values()),
        "cloudkms": key,
        "file": settings.addon("filestore"),
        "secretmanager": settings.addon("secret_sync"),
    }
    names = (
        "cloudresourcemanager",
        "compute",
        "container",
        "iam",
        *(name for name in used if used[name]),
    )
    return [f"{name}.googleapis.com" for name in names]


def check_apis(google: Google, needed: Sequence[str]) -> Iterable[Finding]:
    """Check that APIs are enabled."""
    # At most 30 names a call
    # (https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/batchGet).
    project = google.project
    names = [f"projects/{project}/services/{api}" for api in (*needed, _LIMITS_API)]
    answer = google.get("serviceusage", f"projects/{project}/services:batchGet", names=names)
    enabled = {
        str(api["name"]).rsplit("/", 1)[-1]
        for api in answer.get("services", [])
        if api.get("state") == "ENABLED"
    }
    if off := [api for api in needed if api not in enabled]:
        yield APIS.found(
            "off",
            apis=", ".join(off),
            are=is_or_are(len(off)),
            names=" ".join(off),
            project=project,
        )
    if on := [api for api in needed if api in enabled]:
        yield APIS.found("on", apis=", ".join(on))
    if _LIMITS_API not in enabled:
        yield APIS.found("no-limits", names=_LIMITS_API, project=project)


def check_permissions(google: Google, settings: EnvironmentSettings) -> Iterable[Finding]:
    """Check the caller's permissions in the project, and on the nodes' service account."""
    given = settings.cluster.node_service_account
    own, account = given == OWN_ACCOUNT, None if given == OWN_ACCOUNT else given
    needed = needed_for(
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
    grants = [
        f"gcloud projects add-iam-policy-binding {google.project} --member={_member(google)}"
        f" --role={role}" + condition_of(role)
        for role in roles_of(lacking)
    ]
    shown, commands = first_names(lacking, _SHOWN), "\n".join(grants)
    return PERMISSIONS.found("lacking", count=len(lacking), of=of, shown=shown, grants=commands)


def _node_account(google: Google, account: str) -> Finding:
    path = f"projects/-/serviceAccounts/{account}"
    if google.exists("iam", path) is None:
        name, _, domain = account.partition("@")
        return PERMISSIONS.found(
            "no-account", account=account, name=name, project=domain.split(".", 1)[0]
        )
    act = ACT_AS
    if not google.lacking("iam", path, [act]):
        return PERMISSIONS.found("account", account=account)
    role = role_of(act)
    return PERMISSIONS.found(
        "no-act-as", account=account, permission=act, member=_member(google), role=role
    )


def _member(google: Google) -> str:
    if google.account:
        return f"serviceAccount:{google.account}"
    return '"user:$(gcloud config get account)"'
