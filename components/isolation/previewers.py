"""Rights of the identities that preview an environment and look for its drift.

Pulumi's kubernetes plugin previews a change by a server-side apply as a dry run, for which
Kubernetes demands the right to the change itself. Where it lacks that right it compares on the
client, with the same plan (pulumi-kubernetes, provider.go, Create and Update: IsForbidden). So
kinds that RBAC and admission protect badly against a dry run, roles and policies, are only read
here, and Secrets not even that. It previews Helm releases without asking the cluster.
"""

import json
from collections.abc import Sequence

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.admission import policy_with_binding
from berth.components.isolation.rbac import (
    READ,
    RoleRule,
    binding_of,
    cluster_role_manifest,
    role_rule,
    user_subject,
)

_PREVIEW = (*READ, "create", "patch")

# Kinds that berth applies, by API group.
_APPLIED = {
    "": [
        "configmaps",
        "limitranges",
        "namespaces",
        "persistentvolumeclaims",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ],
    "apps": ["daemonsets"],
    "batch": ["cronjobs"],
    "networking.k8s.io": ["networkpolicies"],
    "ray.io": ["rayclusters", "rayjobs", "rayservices"],
    "resource.k8s.io": ["deviceclasses", "resourceclaimtemplates"],
    "scheduling.k8s.io": ["priorityclasses"],
    "secret-sync.gke.io": ["secretsyncs"],
    "secrets-store.csi.x-k8s.io": ["secretproviderclasses"],
    "storage.k8s.io": ["storageclasses"],
}

_RULES: list[RoleRule] = [
    *(role_rule(group, resources, _PREVIEW) for group, resources in _APPLIED.items()),
    # Kinds that berth applies too, and that are read for drift only.
    role_rule(
        "admissionregistration.k8s.io",
        ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        READ,
    ),
    role_rule(
        "rbac.authorization.k8s.io",
        ["clusterrolebindings", "clusterroles", "rolebindings", "roles"],
        READ,
    ),
    # What the plugin looks at to see whether an object is ready.
    role_rule("", ["endpoints", "events", "pods"], READ),
    role_rule("events.k8s.io", ["events"], READ),
    role_rule("discovery.k8s.io", ["endpointslices"], READ),
    # What `berth upgrade plan` asks: versions of nodes and CRDs, and numbers of objects.
    role_rule("", ["nodes"], ["get", "list"]),
    role_rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get", "list"]),
    {"apiGroups": ["nvidia.com", "ray.io"], "resources": ["*"], "verbs": ["list"]},
]


def preview_rights(environment: str, users: Sequence[str]) -> list[Manifest]:
    """Return what lets users preview an environment: they write in dry runs and read no Secret."""
    if not users:
        return []
    name = f"berth-previewers-{environment}"
    # CEL has JSON's strings, but for characters in two halves.
    users_in_cel = json.dumps(sorted(users), ensure_ascii=False)
    role = cluster_role_manifest(name, MANAGED_BY, _RULES)
    return [
        *policy_with_binding("preview-policy", name=name, users=users_in_cel),
        role,
        binding_of(role, [user_subject(user) for user in sorted(users)]),
    ]
