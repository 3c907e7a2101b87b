"""Immutable fields of the kinds that berth registers: their change replaces the object.

The table agrees with the plans of the real plugin. So it has a ConfigMap's data, which Kubernetes
would let change (pods that read it restart under a new name), and not a ResourceClaimTemplate's
spec (planned as an update, which the server's dry run refuses).

Sources, in the Kubernetes repository: `ValidateServiceUpdate` and `ValidateResourceQuotaUpdate`
(pkg/apis/core/validation), `ValidateDeploymentUpdate` and its neighbors
(pkg/apis/apps/validation), `ValidateRoleBindingUpdate` (pkg/apis/rbac/validation).

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (4-preview-update.json)
Answers to (read): kubernetes v1.36.3, the validations that are named above:
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Path = tuple[str | int, ...]

_IDENTITY: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
_DATA: tuple[Path, ...] = (("data",), ("binaryData",), ("stringData",), ("type",))

_TABLE: dict[tuple[str, str], tuple[Path, ...]] = {
    ("", "ConfigMap"): _DATA,
    ("", "ResourceQuota"): (("spec", "scopes"),),
    ("", "Secret"): _DATA,
    ("", "Service"): (("spec", "clusterIP"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "Deployment"): (("spec", "selector"),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
}


def immutable_fields(item: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the paths of an object's fields whose change replaces the object."""
    group = str(item.get("apiVersion", "")).rpartition("/")[0]
    return (*_IDENTITY, *_TABLE.get((group, str(item.get("kind", ""))), ()))


def needs_replacement(path: Path, value: Any, fields: tuple[Path, ...]) -> bool:
    """Return whether a change at `path` to `value` is at, under or around one of the fields."""
    return any(path[: len(field)] == field or _holds(path, value, field) for field in fields)


def _holds(path: Path, value: Any, field: Path) -> bool:
    if field[: len(path)] != path:
        return False
    for key in field[len(path) :]:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True
