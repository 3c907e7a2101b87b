"""Checks of the caller's permissions in the project, and on the nodes' service account."""

from collections.abc import Iterable, Mapping

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.core import fast_yaml
from berth.components.core.types import OWN_ACCOUNT
from berth.components.core.words import first_names
from berth.components.gke import NODE_ROLES
from berth.stacks.settings.environment import EnvironmentSettings

PERMISSIONS = Topic("permissions")

_TABLES = fast_yaml.load_beside(__file__)

ROLES: dict[str, str] = _TABLES["roles"]
"""Smallest of Google's roles with a permission, by its prefix; the first match counts."""

_SHOWN = 6


def _permissions(verbs_by_resource: Mapping[str, str]) -> list[str]:
    permissions = []
    for resource, verbs in verbs_by_resource.items():
        permissions += [f"{resource}.{verb}" for verb in verbs.split()]
    return permissions


OF_TYPE = {kind: _permissions(resources) for kind, resources in _TABLES["of_type"].items()}
"""Permissions that create, change and delete each type of resource that the program registers."""

ON_THE_CLUSTER = _permissions(_TABLES["on_the_cluster"])
"""Permissions for operators, berths and clusters."""

CONNECT = "container.clusters.connect"
"""Permission to reach a control plane by its DNS name."""

ACT_AS = "iam.serviceAccounts.actAs"
_OWN_ACCOUNT = ("gcp:serviceaccount/", "gcp:projects/")


def needed_permissions(
    *, networks: bool, node_account: bool, own_account: bool = False, by_name: bool = False
) -> list[str]:
    """Return the permissions that an update needs in the project.

    Args:
        networks: whether the program creates the networks.
        node_account: whether the settings name the nodes' account, which is checked by itself.
        own_account: whether the program creates the nodes' account.
        by_name: whether kubeconfigs have the control plane's DNS name.
    """
    prefixes = ["gcp:container/"]
    if networks:
        prefixes.append("gcp:compute/")
    if own_account:
        prefixes += _OWN_ACCOUNT
    permissions = set(ON_THE_CLUSTER)
    for resource_type, of_type in OF_TYPE.items():
        if resource_type.startswith(tuple(prefixes)):
            permissions.update(of_type)
    if by_name:
        permissions.add(CONNECT)
    if node_account:
        permissions.discard(ACT_AS)
    return sorted(permissions)


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
    roles = ", ".join(f"'{name}'" for name in NODE_ROLES)
    attribute = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"
    return f' --condition="^:^title=berth-nodes:expression={attribute}.hasOnly([{roles}])"'


def check_permissions(
    google: GoogleClient, settings: EnvironmentSettings
) -> Iterable[DoctorFinding]:
    """Check the caller's permissions in the project, and on the nodes' service account.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    account = settings.cluster.node_service_account
    own = account == OWN_ACCOUNT
    needed = needed_permissions(
        networks=settings.network.existing is None,
        node_account=account is not None and not own,
        own_account=own,
        by_name=bool(settings.cluster.dns_endpoint),
    )
    lacking = google.lacking("cloudresourcemanager", f"projects/{google.project}", needed)
    if lacking:
        shown = first_names(lacking, _SHOWN)
        yield PERMISSIONS.missing(
            f"you lack {len(lacking)} of {len(needed)} permissions: {shown}",
            "\n".join(_grant(google, role) for role in roles_of(lacking)),
        )
    else:
        yield PERMISSIONS.fine(f"you have all {len(needed)} permissions that an update needs")
    if account and not own:
        try:
            yield _check_node_account(google, account)
        except GoogleError as error:
            # An API that is not enabled is a finding of its own.
            if error.kind != "disabled":
                raise
            yield PERMISSIONS.unchecked(
                f"service account {account} is not checked: {error.problem}"
            )


def _grant(google: GoogleClient, role: str) -> str:
    """Return the command that gives a role to the caller."""
    return (
        f"gcloud projects add-iam-policy-binding {google.project} --member={_member(google)}"
        f" --role={role}{condition_of(role)}"
    )


def _check_node_account(google: GoogleClient, account: str) -> DoctorFinding:
    path = f"projects/-/serviceAccounts/{account}"
    if google.exists("iam", path) is None:
        name, _, domain = account.partition("@")
        project = domain.split(".", 1)[0]
        return PERMISSIONS.missing(
            f"there is no service account {account}, as which nodes are to run",
            f"gcloud iam service-accounts create {name} --project={project}",
        )
    if google.lacking("iam", path, [ACT_AS]):
        return PERMISSIONS.missing(
            f"you may not let nodes run as {account}: you lack {ACT_AS}",
            f"gcloud iam service-accounts add-iam-policy-binding {account}"
            f" --member={_member(google)} --role={role_of(ACT_AS)}",
        )
    return PERMISSIONS.fine(f"you may let nodes run as {account}")


def _member(google: GoogleClient) -> str:
    if google.account:
        return f"serviceAccount:{google.account}"
    return '"user:$(gcloud config get account)"'
