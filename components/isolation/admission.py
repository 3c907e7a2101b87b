"""Objects of an environment that isolate berths, from the files beside: policies and classes."""

import json
from collections.abc import Iterable, Sequence

from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.rbac import binding_to_role

POOLS = "berth/pools"
"""Annotation of a berth's namespace: node pools of the berth's pods, with commas between them."""

PRIORITY = "berth/priority"
"""Annotation of a berth's namespace: the only PriorityClass of its pods."""

RUNTIME_CLASS = "berth/runtime-class"
"""Annotation of a berth's namespace: the only RuntimeClass of its pods. Without it they have
none."""

POD_RULES = "berth/pod-rules"
"""Annotation of a berth's namespace whose level is `privileged` for some fields only: its pods keep
all of `restricted` but folders of NCCL (`restricted`), and profiles too (`nested`)."""

AUTOSCALER = "berth/autoscaler"
"""Annotation of a berth's namespace, `true`: Ray's autoscaler runs beside the berth's head."""

RAY_AUTH = "berth/ray-auth"
"""Annotation of a berth's namespace: mode of authentication of the RayClusters."""

LONGEST_GRACE = 600
"""Seconds that a pod of a berth may take to end: beyond them it would outlive the berth's hours."""


def pod_policy() -> list[Manifest]:
    """Return the admission policy on pods in namespaces of berths, with its binding."""
    return _policy("pod-policy")


def ray_policy(trusted: Iterable[str] = ()) -> list[Manifest]:
    """Return the admission policy on Ray's kinds in namespaces of berths, with its binding.

    It does not apply to `trusted` users, such as the keeper, whose rights another policy limits.
    """
    expression = f"!(request.userInfo.username in {json.dumps(sorted(trusted))})"
    return _policy("ray-policy", {"name": "not-trusted", "expression": expression})


def admission_policies(trusted: Iterable[str] = ()) -> list[Manifest]:
    """Return all admission policies of an environment with their bindings; see `ray_policy`."""
    files = ("pod-policy", "pod-update-policy", "claim-policy", "ray-version-policy")
    return [*(manifest for file in files for manifest in _policy(file)), *ray_policy(trusted)]


def priority_classes() -> list[Manifest]:
    """Return the PriorityClasses of an environment: named clusters preempt engineers' berths."""
    classes = fast_yaml.load_beside(__file__, "priority-classes.yaml")
    shared = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [
        {**shared, "metadata": {"name": name, "labels": MANAGED_BY}, **fields}
        for name, fields in classes.items()
    ]


def preview_rights(environment: str, users: Sequence[str]) -> list[Manifest]:
    """Return what lets users preview an environment: they write in dry runs and read no Secret."""
    if not users:
        return []
    policy, policy_binding, role = fast_yaml.load_beside(__file__, "previewers.yaml")
    name = f"berth-previewers-{environment}"
    for manifest in (policy, policy_binding, role):
        manifest["metadata"] = {"name": name, "labels": MANAGED_BY}
    # CEL has JSON's strings, but for characters in two halves.
    users_in_cel = json.dumps(sorted(users), ensure_ascii=False)
    (condition,) = policy["spec"]["matchConditions"]
    condition["expression"] = condition["expression"].replace("PREVIEWERS", users_in_cel)
    policy_binding["spec"]["policyName"] = name
    subjects = [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        for user in sorted(users)
    ]
    role_binding = binding_to_role("ClusterRoleBinding", role["metadata"], "ClusterRole", subjects)
    return [policy, policy_binding, role, role_binding]


def _policy(file: str, *conditions: dict[str, str]) -> list[Manifest]:
    """Return the policy of a file with further conditions, and the binding that makes it refuse."""
    written = fast_yaml.load_beside(__file__, f"{file}.yaml")
    spec = {"failurePolicy": "Fail", **written["spec"]}
    of_objects = [
        {
            "name": f"{which}{name}",
            "expression": expression.replace("WHICH", which).replace("THING", thing),
        }
        for which, thing in (("new", "object"), ("old", "oldObject"))
        for name, expression in written.get("both", {}).items()
    ]
    if of_objects:
        spec["variables"] = of_objects + spec["variables"]
    if conditions:
        spec["matchConditions"] = [*conditions, *spec["matchConditions"]]
    parts = {"": spec, "Binding": {"policyName": written["name"], "validationActions": ["Deny"]}}
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"ValidatingAdmissionPolicy{suffix}",
            "metadata": {"name": written["name"], "labels": MANAGED_BY},
            "spec": part,
        }
        for suffix, part in parts.items()
    ]
