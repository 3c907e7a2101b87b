"""Isolation of berths: pure functions from settings to objects of a namespace and fields of pods.

Pod Security level and quota come from the manifests that make the pods, so that they agree with the
pods. Belongs here: objects of a berth's namespace, and fields of its pods, that protect other
berths. Does not belong here: Ray.
"""

from berth.components.isolation.admission import (
    DEVICE_ANNOTATIONS,
    NETWORK_ANNOTATIONS,
    admission_policy,
    pod_policy,
    pod_update_policy,
)
from berth.components.isolation.isolation import Isolation, harden, isolate
from berth.components.isolation.pod_security import (
    ENFORCE,
    RAY_USER,
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    RESTRICTED_VOLUMES,
    level_of,
    needed_by,
    restricted,
)
from berth.components.isolation.pod_templates import cluster_spec, pull_secrets, secret_variables
from berth.components.isolation.priority import priority_classes
from berth.components.isolation.quota import BUCKETS, DEFAULT_LIMIT
from berth.components.isolation.ray_admission import LONGEST_GRACE, ray_policy, ray_version_policy
from berth.components.isolation.rbac import OWNER, USER, binding, owner_role, role_binding
from berth.components.isolation.settings import (
    DEVELOPMENT,
    PRODUCTION,
    Access,
    IsolationInputs,
    IsolationSettings,
    PodSecurity,
    PriorityClass,
)
from berth.components.isolation.traffic import (
    DASHBOARD,
    SERVE_PORT,
    network_policy,
    peer,
    tcp,
    to_api_server,
)

__all__ = [
    "BUCKETS",
    "DASHBOARD",
    "DEFAULT_LIMIT",
    "DEVELOPMENT",
    "DEVICE_ANNOTATIONS",
    "ENFORCE",
    "LONGEST_GRACE",
    "NETWORK_ANNOTATIONS",
    "OWNER",
    "PRODUCTION",
    "RAY_USER",
    "RESTRICTED_CONTAINER",
    "RESTRICTED_POD",
    "RESTRICTED_VOLUMES",
    "SERVE_PORT",
    "USER",
    "Access",
    "Isolation",
    "IsolationInputs",
    "IsolationSettings",
    "PodSecurity",
    "PriorityClass",
    "admission_policy",
    "binding",
    "cluster_spec",
    "harden",
    "isolate",
    "level_of",
    "needed_by",
    "network_policy",
    "owner_role",
    "peer",
    "pod_policy",
    "pod_update_policy",
    "priority_classes",
    "pull_secrets",
    "ray_policy",
    "ray_version_policy",
    "restricted",
    "role_binding",
    "secret_variables",
    "tcp",
    "to_api_server",
]
