"""Admission policies of an environment, and the annotations of namespaces by which they judge."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest, filled
from berth.components.isolation.pod_parts import (
    AFFINITY,
    PARTS,
    conditions_on_pods,
    conditions_on_templates,
)
from berth.components.programs.decision import KEEPER, KUEUE

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
    return policy_with_binding("pod-policy", **_pod_rules(conditions_on_pods()))


def ray_policy(trusted: Iterable[str] = ()) -> list[Manifest]:
    """Return the admission policy on Ray's kinds in namespaces of berths, with its binding.

    It does not apply to `trusted` users, such as the keeper, whose rights another policy limits.
    """
    variables = fast_yaml.load_beside(__file__, "ray-policy-variables.yaml")
    managers = {"keeper": KEEPER, "kueue": KUEUE}
    return policy_with_binding(
        "ray-policy",
        trusted=json.dumps(sorted(trusted)),
        new=filled(variables, side="new", object="object", **managers),
        old=filled(variables, side="old", object="oldObject", **managers),
        **_pod_rules(conditions_on_templates()),
    )


def _pod_rules(conditions: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables and rules on what a pod may have, as values of a policy's names."""
    rules = filled(
        fast_yaml.load_beside(__file__, "pod-rules.yaml"),
        annotation=PARTS,
        affinity=AFFINITY,
        longest_grace=LONGEST_GRACE,
        **conditions,
    )
    return {"variables": rules["variables"], "rules": rules["validations"]}


def admission_policies(trusted: Iterable[str] = ()) -> list[Manifest]:
    """Return all admission policies of an environment with their bindings; see `ray_policy`."""
    return [
        *pod_policy(),
        *policy_with_binding("pod-update-policy"),
        *policy_with_binding("claim-policy"),
        *policy_with_binding("ray-version-policy"),
        *ray_policy(trusted),
    ]


def policy_with_binding(file: str, **values: Any) -> list[Manifest]:
    """Return the policy in a file, filled with values, and the binding that makes it refuse."""
    template = fast_yaml.load_beside(__file__, f"{file}.yaml")
    policy = filled(template, labels=MANAGED_BY, **values)
    binding = {
        "apiVersion": policy["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": policy["metadata"],
        "spec": {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]},
    }
    return [policy, binding]
