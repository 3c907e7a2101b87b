"""Who may do what in a berth's namespace: what an engineer's day with it needs, and nothing beyond it."""

from __future__ import annotations

from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.isolation.settings import Access, PodSecurity

_GROUP = "rbac.authorization.k8s.io"
_SEE = ["get", "list", "watch"]
NAME = "berth-user"
"""Name of Role and RoleBinding."""


def role(namespace: str, labels: dict[str, str], token_secret: str | None, level: PodSecurity) -> Manifest:
    """What a berth's people may do in it.

    Where pods may have folders of their node, whoever makes a RayCluster, RayJob or RayService decides what a pod does with the node:
    there they only see them, and run jobs by `ray job submit`.

    Args:
        namespace: the berth's.
        labels: labels of the object.
        token_secret: the Secret with Ray's token, and no other one can be read; None where its name is not known.
        level: what the API server holds the namespace's pods to.
    """
    rules = [
        _rule("", ["pods", "pods/log", "services", "endpoints", "events", "persistentvolumeclaims"], _SEE),
        _rule("", ["resourcequotas", "limitranges"], _SEE),
        # Over WebSockets kubectl asks by GET, over SPDY by POST.
        _rule("", ["pods/exec", "pods/portforward"], ["get", "create"]),
        *([_rule("", ["secrets"], ["get"]) | {"resourceNames": [token_secret]}] if token_secret else []),
        _rule("events.k8s.io", ["events"], _SEE),
        _rule("batch", ["jobs"], _SEE),
        _rule("metrics.k8s.io", ["pods"], _SEE),
        _rule("resource.k8s.io", ["resourceclaims"], _SEE),
        _rule("ray.io", ["rayclusters", "rayjobs", "rayservices"], _SEE),
    ]
    if level != "privileged":
        rules += [
            _rule("ray.io", ["rayclusters"], ["patch"]),
            _rule("ray.io", ["rayjobs", "rayservices"], ["create", "update", "patch", "delete"]),
        ]
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(namespace: str, labels: dict[str, str], access: Access) -> Manifest:
    """Who has the Role.

    Args:
        namespace: the berth's.
        labels: labels of the object.
        access: whom it names; there must be somebody.
    """
    accounts = [account.split("/") for account in access.service_accounts]
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": NAME},
        "subjects": [
            *({"apiGroup": _GROUP, "kind": "User", "name": user} for user in access.users),
            *({"apiGroup": _GROUP, "kind": "Group", "name": group} for group in access.groups),
            *({"kind": "ServiceAccount", "namespace": account[0], "name": account[1]} for account in accounts),
        ],
    }


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
