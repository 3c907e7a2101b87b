"""Permissions that `pulumi up` needs, by the resources that the program registers.

Sources: the permissions that each method of the Compute Engine, GKE and IAM APIs asks for
(https://docs.cloud.google.com/compute/docs/reference/rest/v1,
https://docs.cloud.google.com/kubernetes-engine/docs/reference/api-permissions,
https://docs.cloud.google.com/iam/docs/roles-permissions).
"""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.gke import NODE_ROLES

_NETWORK_ADMIN, _SECURITY_ADMIN = "roles/compute.networkAdmin", "roles/compute.securityAdmin"
_GKE_ADMIN, _ACCOUNT_USER = "roles/container.admin", "roles/iam.serviceAccountUser"
_ACCOUNT_ADMIN, _IAM_ADMIN = "roles/iam.serviceAccountAdmin", "roles/resourcemanager.projectIamAdmin"

ROLES: dict[str, str] = {
    "compute.networks.": _NETWORK_ADMIN,
    "compute.subnetworks.": _NETWORK_ADMIN,
    "compute.routers.": _NETWORK_ADMIN,
    "compute.addresses.": _NETWORK_ADMIN,
    "compute.firewalls.": _SECURITY_ADMIN,
    "compute.globalOperations.": _NETWORK_ADMIN,
    "compute.regionOperations.": _NETWORK_ADMIN,
    "compute.": "roles/compute.viewer",
    "container.": _GKE_ADMIN,
    "iam.serviceAccounts.actAs": _ACCOUNT_USER,
    "iam.serviceAccounts.": _ACCOUNT_ADMIN,
    "resourcemanager.projects.": _IAM_ADMIN,
}
"""Smallest of Google's roles with a permission, by its prefix; the first match counts."""


def _permissions(api: str, **verbs: str) -> tuple[str, ...]:
    """Return permissions of an API by resource: `networks="create get"`."""
    return tuple(f"{api}.{resource}.{verb}" for resource, words in verbs.items() for verb in words.split())


_ACT_AS = "iam.serviceAccounts.actAs"

OF_TYPE: dict[str, tuple[str, ...]] = {
    "gcp:compute/network:Network": _permissions(
        "compute", networks="create delete get updatePolicy", globalOperations="get"
    ),
    "gcp:compute/subnetwork:Subnetwork": _permissions(
        "compute", networks="updatePolicy", subnetworks="create delete get update use", regionOperations="get"
    ),
    "gcp:compute/firewall:Firewall": _permissions(
        "compute", firewalls="create delete get update", networks="updatePolicy", globalOperations="get"
    ),
    "gcp:compute/router:Router": _permissions(
        "compute", networks="updatePolicy", routers="create delete get update", regionOperations="get"
    ),
    "gcp:compute/routerNat:RouterNat": _permissions("compute", routers="get update", regionOperations="get"),
    "gcp:serviceaccount/account:Account": _permissions("iam", serviceAccounts="create delete get update"),
    "gcp:projects/iAMMember:IAMMember": _permissions("resourcemanager", projects="getIamPolicy setIamPolicy"),
    "gcp:container/cluster:Cluster": (
        *_permissions("container", clusters="create delete get list update", operations="get"),
        _ACT_AS,
    ),
    "gcp:container/nodePool:NodePool": (
        *_permissions("compute", instanceGroupManagers="get"),
        *_permissions("container", clusters="get update", operations="get"),
        _ACT_AS,
    ),
}
"""Permissions that create, change and delete each type of resource that the program registers."""

ON_THE_CLUSTER = _permissions(
    "container",
    clusterRoleBindings="create",
    clusterRoles="bind create escalate",
    configMaps="create",
    cronJobs="create",
    customResourceDefinitions="create",
    daemonSets="create",
    deployments="create",
    events="list",
    limitRanges="create",
    namespaces="create",
    networkPolicies="create",
    nodes="list",
    persistentVolumeClaims="create",
    pods="list",
    priorityClasses="create",
    resourceQuotas="create",
    roleBindings="create",
    roles="bind create escalate",
    secrets="create",
    serviceAccounts="create",
    services="create",
    thirdPartyObjects="create list",
)
"""Permissions for operators, berths and clusters, which IAM grants as Kubernetes' own RBAC does.

Newer kinds, such as admission policies and device classes, are not in IAM's list
(https://docs.cloud.google.com/iam/docs/roles-permissions/container).
"""


_OWN_ACCOUNT = ("gcp:serviceaccount/", "gcp:projects/")


def needed(*, networks: bool, node_account: bool, own_account: bool = False) -> list[str]:
    """Return the permissions that an update needs in the project.

    Args:
        networks: the program creates the networks.
        node_account: nodes run as a service account of the settings, which is checked itself.
        own_account: the program creates the nodes' service account.
    """
    prefixes = ("gcp:container/", *(["gcp:compute/"] if networks else []), *(_OWN_ACCOUNT if own_account else ()))
    types = [kind for kind in OF_TYPE if kind.startswith(prefixes)]
    permissions = {permission for kind in types for permission in OF_TYPE[kind]} | set(ON_THE_CLUSTER)
    return sorted(permissions - ({_ACT_AS} if node_account else set()))


def role_of(permission: str) -> str:
    """Return the smallest of Google's own roles with a permission."""
    return next(role for beginning, role in ROLES.items() if permission.startswith(beginning))


def roles_of(permissions: Iterable[str]) -> list[str]:
    """Return roles that together have some permissions."""
    return sorted({role_of(permission) for permission in permissions})


def condition_of(role: str) -> str:
    """Return the option that limits a role: who may set the project's policy could do anything."""
    if role != _IAM_ADMIN:
        return ""
    granted = ", ".join(f"'{name}'" for name in NODE_ROLES)
    attribute = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"
    return f' --condition="^:^title=berth-nodes:expression={attribute}.hasOnly([{granted}])"'
