"""Role and RoleBinding of a berth: the rights that its users need day to day, and no others."""

from collections.abc import Sequence
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.pod_templates import secrets_of
from berth.components.isolation.settings import Access, PodSecurity

_GROUP = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "update", "patch", "delete"]
USER = "berth-user"
"""Name of Role and RoleBinding."""
OWNER = "berth-owner"
"""Name of Role and RoleBinding of those who update their berth's RayCluster with Pulumi."""


def role(manifests: Sequence[Manifest], level: PodSecurity) -> Manifest:
    """Return the Role of a berth's users.

    Users read and write the Secrets that the pods name, and read why a SecretSync does not.

    At level `privileged` a pod may mount folders of its node, so users there may not create or
    change RayClusters, RayJobs and RayServices: they read them, and run jobs with `ray job submit`.
    """
    main, secrets = manifests[0], secrets_of(manifests)
    # KubeRay chooses the name of a RayCluster that it creates, so the token's Secret is unknown.
    token = [main["metadata"]["name"]] if main["kind"] == "RayCluster" else []
    syncs = any(manifest["kind"] == "SecretSync" for manifest in manifests)
    rules = [
        _rule("", ["pods", "pods/log", "services", "endpoints", "events", "persistentvolumeclaims"], _READ),
        _rule("", ["resourcequotas", "limitranges"], _READ),
        # kubectl sends GET over WebSockets, POST over SPDY.
        _rule("", ["pods/exec", "pods/portforward"], ["get", "create"]),
        *([_rule("", ["secrets"], ["get"]) | {"resourceNames": token}] if token else []),
        # By name, server-side apply may create an object too: its request has the name in the path.
        *([_rule("", ["secrets"], ["get", *_WRITE]) | {"resourceNames": secrets}] if secrets else []),
        *([_rule("secret-sync.gke.io", ["secretsyncs"], _READ)] if syncs else []),
        _rule("events.k8s.io", ["events"], _READ),
        _rule("batch", ["jobs"], _READ),
        _rule("metrics.k8s.io", ["pods"], _READ),
        _rule("resource.k8s.io", ["resourceclaims"], _READ),
        _rule("ray.io", ["rayclusters", "rayjobs", "rayservices"], _READ),
    ]
    if level != "privileged":
        rules += [
            _rule("ray.io", ["rayclusters"], ["patch"]),
            _rule("ray.io", ["rayjobs", "rayservices"], _WRITE),
        ]
    metadata = {"name": USER, "namespace": main["metadata"]["namespace"], "labels": MANAGED_BY}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def owner_role(namespace: str, labels: dict[str, str], contract: str) -> Manifest:
    """Return the Role of those who run Pulumi for what is inside the berth, and for nothing else.

    It has what `berth-user` lacks for that. It cannot change the namespace, its quota, its policies
    or its Roles.
    """
    rules = [
        _rule("", ["namespaces"], ["get"]),
        _rule("", ["configmaps"], ["get"]) | {"resourceNames": [contract]},
        # Their RayCluster may name any Secret of the namespace, so that pods show each value.
        _rule("", ["secrets"], ["get", *_WRITE]),
        _rule("ray.io", ["rayclusters", "rayjobs", "rayservices"], [*_READ, *_WRITE]),
        _rule("resource.k8s.io", ["resourceclaimtemplates"], _READ),
    ]
    metadata = {"name": OWNER, "namespace": namespace, "labels": labels}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(namespace: str, labels: dict[str, str], access: Access, role: str = USER) -> Manifest:
    """Return the RoleBinding of a berth's users, of whom there must be at least one."""
    accounts = [account.split("/") for account in access.service_accounts]
    return binding(
        "RoleBinding",
        {"name": role, "namespace": namespace, "labels": labels},
        "Role",
        [
            *({"apiGroup": _GROUP, "kind": "User", "name": user} for user in access.users),
            *({"apiGroup": _GROUP, "kind": "Group", "name": group} for group in access.groups),
            *({"kind": "ServiceAccount", "namespace": account[0], "name": account[1]} for account in accounts),
        ],
    )


def binding(kind: str, metadata: dict[str, Any], role_kind: str, subjects: list[dict[str, str]]) -> Manifest:
    """Return the binding of subjects to the role of the binding's own name."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _GROUP, "kind": role_kind, "name": metadata["name"]},
        "subjects": subjects,
    }


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
