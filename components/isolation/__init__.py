"""Isolation of berths: pure functions from settings to objects of a namespace and fields of pods.

Pod Security level and quota come from the manifests that make the pods, so that they agree with the
pods. Belongs here: objects of a berth's namespace, and fields of its pods, that protect other
berths. Does not belong here: Ray.
"""

from berth.components.isolation.admission import (
    LONGEST_GRACE,
    admission_policies,
    pod_policy,
    preview_rights,
    priority_classes,
    ray_policy,
)
from berth.components.isolation.isolation import Isolation, harden, isolate
from berth.components.isolation.pod_security import (
    RAY_USER,
    RESTRICTED_CONTAINER,
    RESTRICTED_VOLUMES,
    pod_security_level,
)
from berth.components.isolation.pod_templates import cluster_spec, pull_secrets, secret_variables
from berth.components.isolation.quota import DEFAULT_LIMIT, bucket_annotations
from berth.components.isolation.rbac import OWNER, USER, binding_to_role, owner_role, role_binding
from berth.components.isolation.settings import (
    DEVELOPMENT,
    PRODUCTION,
    Access,
    IsolationInputs,
    IsolationSettings,
    PriorityClass,
    UserName,
)
from berth.components.isolation.traffic import (
    DASHBOARD,
    SERVE_PORT,
    operator_policy,
    pods_of_namespace,
    tcp_ports,
    to_api_server,
)
