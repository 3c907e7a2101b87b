"""Isolation of berths: pure functions from settings to objects of a namespace and fields of pods.

Pod Security level and quota come from the manifests that make the pods, so that they agree with the
pods. Belongs here: objects of a berth's namespace, and fields of its pods, that protect other
berths. Does not belong here: Ray.
"""

from berth.components.isolation.access import Access, UserName
from berth.components.isolation.admission import (
    LONGEST_GRACE,
    admission_policies,
    pod_policy,
    ray_policy,
)
from berth.components.isolation.inputs import IsolationInputs, NetworkPeer
from berth.components.isolation.isolation import (
    Isolation,
    PodStandard,
    harden,
    isolate,
    pod_standard,
    standard_of,
)
from berth.components.isolation.pod_security import (
    RAY_USER,
    RESTRICTED_CONTAINER,
    RESTRICTED_VOLUMES,
    places_beyond,
    pod_security_level,
)
from berth.components.isolation.pod_templates import (
    cluster_spec,
    pods_of,
    pull_secrets,
    secret_variables,
)
from berth.components.isolation.previewers import preview_rights
from berth.components.isolation.priority import (
    DEVELOPMENT,
    PRODUCTION,
    PriorityClass,
    priority_classes,
)
from berth.components.isolation.quota import DEFAULT_LIMIT, bucket_annotations
from berth.components.isolation.rbac import (
    OWNER_ROLE,
    USER_ROLE,
    RoleSubject,
    access_binding,
    binding_of,
    owner_role,
    role_manifest,
    role_rule,
)
from berth.components.isolation.settings import MOST_DISK, IsolationSettings, PodSecurity
from berth.components.isolation.traffic import (
    DASHBOARD,
    SERVE_PORT,
    operator_policy,
    pods_of_namespace,
    tcp_ports,
    to_api_server,
)

__all__ = [
    "DASHBOARD",
    "DEFAULT_LIMIT",
    "DEVELOPMENT",
    "LONGEST_GRACE",
    "MOST_DISK",
    "OWNER_ROLE",
    "PRODUCTION",
    "RAY_USER",
    "RESTRICTED_CONTAINER",
    "RESTRICTED_VOLUMES",
    "SERVE_PORT",
    "USER_ROLE",
    "Access",
    "Isolation",
    "IsolationInputs",
    "IsolationSettings",
    "NetworkPeer",
    "PodSecurity",
    "PodStandard",
    "PriorityClass",
    "RoleSubject",
    "UserName",
    "access_binding",
    "admission_policies",
    "binding_of",
    "bucket_annotations",
    "cluster_spec",
    "harden",
    "isolate",
    "operator_policy",
    "owner_role",
    "places_beyond",
    "pod_policy",
    "pod_security_level",
    "pod_standard",
    "pods_of",
    "pods_of_namespace",
    "preview_rights",
    "priority_classes",
    "pull_secrets",
    "ray_policy",
    "role_manifest",
    "role_rule",
    "secret_variables",
    "standard_of",
    "tcp_ports",
    "to_api_server",
]
