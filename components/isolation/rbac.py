"""Role and RoleBinding of a berth: the rights that its users need day to day, and no others."""

from collections.abc import Sequence
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of
from berth.components.isolation.pod_templates import pull_secrets, secret_variables
from berth.components.isolation.settings import Access, PodSecurity

_GROUP = "rbac.authorization.k8s.io"
_WRITE = ["create", "update", "patch", "delete"]
USER = "berth-user"
"""Name of Role and RoleBinding."""
OWNER = "berth-owner"
"""Name of Role and RoleBinding of those who update their berth's RayCluster with Pulumi."""


def user_role(manifests: Sequence[Manifest], level: PodSecurity) -> Manifest:
    """Return the Role of a berth's users.

    Users read and write the Secrets that the pods name, and read why a SecretSync does not.

    At level `privileged` a pod may mount folders of its node, so users there may not create or
    change RayClusters, RayJobs and RayServices: they read them, and run jobs with `ray job submit`.
    """
    main = manifests[0]
    secrets = sorted(
        {*pull_secrets(manifests), *(at["name"] for at in secret_variables(manifests).values())}
    )
    # KubeRay chooses the name of a RayCluster that it creates, so the token's Secret is unknown.
    token = [main["metadata"]["name"]] if main["kind"] == "RayCluster" else []
    syncs = any(manifest["kind"] == "SecretSync" for manifest in manifests)
    # By name, server-side apply may create an object too: its request has the name in the path.
    by_name = [(token, ["get"]), (secrets, ["get", *_WRITE])]
    writes = [
        _rule("ray.io", ["rayclusters"], ["patch"]),
        _rule("ray.io", ["rayjobs", "rayservices"], _WRITE),
    ]
    return manifest_of(
        __file__,
        "role",
        namespace=main["metadata"]["namespace"],
        labels=MANAGED_BY,
        secrets=[
            _rule("", ["secrets"], verbs) | {"resourceNames": names}
            for names, verbs in by_name
            if names
        ],
        syncs=[_rule("secret-sync.gke.io", ["secretsyncs"], ["get", "list", "watch"])]
        if syncs
        else [],
        writes=[] if level == "privileged" else writes,
    )


def owner_role(namespace: str, labels: dict[str, str], contract: str) -> Manifest:
    """Return the Role of those who run Pulumi for what is inside the berth, and for nothing else.

    It has what `berth-user` lacks for that. It cannot change the namespace, its quota, its policies
    or its Roles.
    """
    return manifest_of(
        __file__, "owner_role", namespace=namespace, labels=labels, contract=contract
    )


def role_binding(
    namespace: str, labels: dict[str, str], access: Access, role: str = USER
) -> Manifest:
    """Return the RoleBinding of a berth's users, of whom there must be at least one."""
    accounts = [account.split("/") for account in access.service_accounts]
    return binding_to_role(
        "RoleBinding",
        {"name": role, "namespace": namespace, "labels": labels},
        "Role",
        [
            *({"apiGroup": _GROUP, "kind": "User", "name": user} for user in access.users),
            *({"apiGroup": _GROUP, "kind": "Group", "name": group} for group in access.groups),
            *(
                {"kind": "ServiceAccount", "namespace": account[0], "name": account[1]}
                for account in accounts
            ),
        ],
    )


def binding_to_role(
    kind: str, metadata: dict[str, Any], role_kind: str, subjects: list[dict[str, str]]
) -> Manifest:
    """Return the binding of subjects to the role of the binding's own name."""
    names = {"role_kind": role_kind, "name": metadata["name"]}
    return manifest_of(
        __file__, "binding", kind=kind, metadata=metadata, subjects=subjects, **names
    )


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
