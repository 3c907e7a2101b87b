"""Rights of identities that preview an environment: they write in dry runs and read no Secret."""

import json
from collections.abc import Sequence
from pathlib import Path

from berth.components.core import fast_yaml
from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.rbac import binding


def preview_rights(environment: str, users: Sequence[str]) -> list[Manifest]:
    """Return the policy that allows dry runs only, and the ClusterRole; nothing without users."""
    if not users:
        return []
    policy, policy_binding, role = fast_yaml.read(Path(__file__).with_name("previewers.yaml"))
    name = f"berth-previewers-{environment}"
    for manifest in (policy, policy_binding, role):
        manifest["metadata"] = {"name": name, "labels": MANAGED_BY}
    # CEL has JSON's strings, but for characters in two halves.
    users_in_cel = json.dumps(sorted(users), ensure_ascii=False)
    (condition,) = policy["spec"]["matchConditions"]
    condition["expression"] = condition["expression"].replace("PREVIEWERS", users_in_cel)
    policy_binding["spec"]["policyName"] = name
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user} for user in sorted(users)]
    role_binding = binding("ClusterRoleBinding", role["metadata"], "ClusterRole", subjects)
    return [policy, policy_binding, role, role_binding]
