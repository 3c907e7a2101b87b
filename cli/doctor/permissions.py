"""The permissions that whoever runs `pulumi up` needs, by what the program makes.

Sources: the permissions that each method of the Compute Engine, GKE and IAM APIs asks for
(https://docs.cloud.google.com/compute/docs/reference/rest/v1,
https://docs.cloud.google.com/kubernetes-engine/docs/reference/api-permissions,
https://docs.cloud.google.com/iam/docs/roles-permissions).
"""

from __future__ import annotations

from collections.abc import Iterable

_NETWORK_ADMIN, _SECURITY_ADMIN = "roles/compute.networkAdmin", "roles/compute.securityAdmin"
_GKE_ADMIN, _ACCOUNT_USER = "roles/container.admin", "roles/iam.serviceAccountUser"

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
    "iam.serviceAccounts.": _ACCOUNT_USER,
}
"""The least of Google's own roles that has a permission, by how the permission begins; the first
that fits counts."""

OF_TYPE: dict[str, tuple[str, ...]] = {
    "gcp:compute/network:Network": (
        "compute.networks.create",
        "compute.networks.delete",
        "compute.networks.get",
        "compute.networks.updatePolicy",
        "compute.globalOperations.get",
    ),
    "gcp:compute/subnetwork:Subnetwork": (
        "compute.networks.updatePolicy",
        "compute.subnetworks.create",
        "compute.subnetworks.delete",
        "compute.subnetworks.get",
        "compute.subnetworks.update",
        "compute.subnetworks.use",
        "compute.regionOperations.get",
    ),
    "gcp:compute/firewall:Firewall": (
        "compute.firewalls.create",
        "compute.firewalls.delete",
        "compute.firewalls.get",
        "compute.firewalls.update",
        "compute.networks.updatePolicy",
        "compute.globalOperations.get",
    ),
    "gcp:compute/router:Router": (
        "compute.networks.updatePolicy",
        "compute.routers.create",
        "compute.routers.delete",
        "compute.routers.get",
        "compute.routers.update",
        "compute.regionOperations.get",
    ),
    "gcp:compute/routerNat:RouterNat": (
        "compute.routers.get",
        "compute.routers.update",
        "compute.regionOperations.get",
    ),
    "gcp:container/cluster:Cluster": (
        "container.clusters.create",
        "container.clusters.delete",
        "container.clusters.get",
        "container.clusters.list",
        "container.clusters.update",
        "container.operations.get",
        "iam.serviceAccounts.actAs",
    ),
    "gcp:container/nodePool:NodePool": (
        "compute.instanceGroupManagers.get",
        "container.clusters.get",
        "container.clusters.update",
        "container.operations.get",
        "iam.serviceAccounts.actAs",
    ),
}
"""The permissions for making, changing and deleting each type of resource that the program
registers."""

ON_THE_CLUSTER = (
    "container.clusterRoleBindings.create",
    "container.clusterRoles.bind",
    "container.clusterRoles.create",
    "container.clusterRoles.escalate",
    "container.configMaps.create",
    "container.cronJobs.create",
    "container.customResourceDefinitions.create",
    "container.daemonSets.create",
    "container.deployments.create",
    "container.events.list",
    "container.limitRanges.create",
    "container.namespaces.create",
    "container.networkPolicies.create",
    "container.nodes.list",
    "container.pods.list",
    "container.priorityClasses.create",
    "container.resourceQuotas.create",
    "container.roleBindings.create",
    "container.roles.bind",
    "container.roles.create",
    "container.roles.escalate",
    "container.secrets.create",
    "container.serviceAccounts.create",
    "container.services.create",
    "container.thirdPartyObjects.create",
    "container.thirdPartyObjects.list",
)
"""Those for the operators, berths and clusters on it, which IAM grants as it does Kubernetes' own
RBAC. Newer kinds, such as admission policies and device classes, are not in its list
(https://docs.cloud.google.com/iam/docs/roles-permissions/container)."""

_NETWORK_TYPES = (
    "gcp:compute/network:Network",
    "gcp:compute/subnetwork:Subnetwork",
    "gcp:compute/firewall:Firewall",
    "gcp:compute/router:Router",
    "gcp:compute/routerNat:RouterNat",
)
_CLUSTER_TYPES = ("gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool")


def needed(*, networks: bool, node_account: bool) -> list[str]:
    """The permissions in the project, each once.

    Args:
        networks: the program makes the networks.
        node_account: nodes run as a service account of the settings, which is asked about itself.
    """
    types = (*(_NETWORK_TYPES if networks else ()), *_CLUSTER_TYPES)
    wanted = {permission for kind in types for permission in OF_TYPE[kind]} | set(ON_THE_CLUSTER)
    return sorted(wanted - ({"iam.serviceAccounts.actAs"} if node_account else set()))


def role_of(permission: str) -> str:
    """The least of Google's own roles that has it."""
    return next(role for beginning, role in ROLES.items() if permission.startswith(beginning))


def roles_of(permissions: Iterable[str]) -> list[str]:
    """Roles that together have all of them."""
    return sorted({role_of(permission) for permission in permissions})
