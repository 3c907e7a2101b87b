"""Permissions that `pulumi up` needs, by the resources that the program registers."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from berth.components.core import fast_yaml
from berth.components.gke import NODE_ROLES

_TABLES = fast_yaml.read(Path(__file__).with_name("permissions.yaml"))

ROLES: dict[str, str] = _TABLES["roles"]
"""Smallest of Google's roles with a permission, by its prefix; the first match counts."""


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


def needed(*, networks: bool, node_account: bool, own_account: bool = False, by_name: bool = False) -> list[str]:
    """Return the permissions that an update needs in the project.

    Args:
        networks: the program creates the networks.
        node_account: nodes run as a service account of the settings, which is checked itself.
        own_account: the program creates the nodes' service account.
        by_name: kubeconfigs have the control plane's DNS name.
    """
    prefixes = ("gcp:container/", *(["gcp:compute/"] if networks else []), *(_OWN_ACCOUNT if own_account else ()))
    types = [kind for kind in OF_TYPE if kind.startswith(prefixes)]
    permissions = {permission for kind in types for permission in OF_TYPE[kind]} | set(ON_THE_CLUSTER)
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
