"""Roles and RoleBindings of a berth: the rights that its users need day to day, and no others."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.isolation.access import Access
from berth.components.isolation.pod_templates import pull_secrets, secret_variables
from berth.components.isolation.settings import PodSecurity

_GROUP = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
"""Verbs that read objects of a kind."""
_WRITE = ("create", "update", "patch", "delete")

USER_ROLE = "berth-user"
"""Name of Role and RoleBinding."""
OWNER_ROLE = "berth-owner"
"""Name of Role and RoleBinding of those who update their berth's RayCluster with Pulumi."""


class RoleRule(TypedDict):
    """Rule of a Role, as the API has it: verbs on resources of API groups."""

    apiGroups: list[str]
    resources: list[str]
    verbs: list[str]
    resourceNames: NotRequired[list[str]]


class RoleSubject(TypedDict):
    """Subject of a RoleBinding, as the API has it."""

    kind: str
    name: str
    apiGroup: NotRequired[str]
    namespace: NotRequired[str]


def role_rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> RoleRule:
    """Return a rule for resources of an API group, "" for the core's; for all objects by default.

    Args:
        group: the API group.
        resources: kinds in lowercase and in plural, with a subresource or not: `pods/log`.
        verbs: what may be done.
        names: objects that it may be done with.
    """
    rule: RoleRule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    if names:
        rule["resourceNames"] = list(names)
    return rule


def role_manifest(
    name: str, namespace: str, labels: dict[str, str], rules: Sequence[RoleRule]
) -> Manifest:
    """Return a Role."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "rules": list(rules),
    }


def cluster_role_manifest(name: str, labels: dict[str, str], rules: Sequence[RoleRule]) -> Manifest:
    """Return a ClusterRole."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": list(rules),
    }


def binding_of(role: Manifest, subjects: Sequence[RoleSubject]) -> Manifest:
    """Return the binding of subjects to a Role or a ClusterRole, with the role's own metadata."""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{role['kind']}Binding",
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": _GROUP, "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": list(subjects),
    }


def user_subject(name: str) -> RoleSubject:
    """Return a user of the cluster: on GKE an e-mail address."""
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def user_role(manifests: Sequence[Manifest], level: PodSecurity) -> Manifest:
    """Return the Role of a berth's users.

    Users read and write the Secrets that the pods name, and read why a SecretSync does not.

    At level `privileged` a pod may mount folders of its node, so users there may not create or
    change RayClusters, RayJobs and RayServices: they read them, and run jobs with `ray job submit`.
    """
    main = manifests[0]
    rules = [
        role_rule(
            "",
            ["pods", "pods/log", "services", "endpoints", "events", "persistentvolumeclaims"],
            READ,
        ),
        role_rule("", ["resourcequotas", "limitranges"], READ),
        # kubectl sends GET over WebSockets, POST over SPDY.
        role_rule("", ["pods/exec", "pods/portforward"], ["get", "create"]),
        *_rules_of_secrets(manifests),
        role_rule("events.k8s.io", ["events"], READ),
        role_rule("batch", ["jobs"], READ),
        role_rule("metrics.k8s.io", ["pods"], READ),
        role_rule("resource.k8s.io", ["resourceclaims"], READ),
        role_rule("ray.io", ["rayclusters", "rayjobs", "rayservices"], READ),
    ]
    if level != "privileged":
        rules.append(role_rule("ray.io", ["rayclusters"], ["patch"]))
        rules.append(role_rule("ray.io", ["rayjobs", "rayservices"], _WRITE))
    return role_manifest(USER_ROLE, main["metadata"]["namespace"], MANAGED_BY, rules)


def _rules_of_secrets(manifests: Sequence[Manifest]) -> list[RoleRule]:
    main = manifests[0]
    rules: list[RoleRule] = []
    # KubeRay chooses the name of a RayCluster that it creates, so the token's Secret is unknown.
    if main["kind"] == "RayCluster":
        rules.append(role_rule("", ["secrets"], ["get"], [main["metadata"]["name"]]))
    of_variables = [reference["name"] for reference in secret_variables(manifests).values()]
    secrets = sorted({*pull_secrets(manifests), *of_variables})
    if secrets:
        # By name, server-side apply may create an object too: its request has the name in the path.
        rules.append(role_rule("", ["secrets"], ["get", *_WRITE], secrets))
    if any(manifest["kind"] == "SecretSync" for manifest in manifests):
        rules.append(role_rule("secret-sync.gke.io", ["secretsyncs"], READ))
    return rules


def owner_role(namespace: str, labels: dict[str, str], contract: str) -> Manifest:
    """Return the Role of those who run Pulumi for what is inside the berth, and for nothing else.

    The Role has what `berth-user` lacks for that. It cannot change the namespace, its quota, its
    policies or its Roles.

    Args:
        namespace: the berth's namespace.
        labels: labels of the Role.
        contract: name of the ConfigMap with the environment's contract.
    """
    rules = [
        role_rule("", ["namespaces"], ["get"]),
        role_rule("", ["configmaps"], ["get"], [contract]),
        # Their RayCluster may name any Secret of the namespace, so that pods show each value.
        role_rule("", ["secrets"], ["get", *_WRITE]),
        role_rule("ray.io", ["rayclusters", "rayjobs", "rayservices"], [*READ, *_WRITE]),
        role_rule("resource.k8s.io", ["resourceclaimtemplates"], READ),
    ]
    return role_manifest(OWNER_ROLE, namespace, labels, rules)


def access_binding(role: Manifest, access: Access) -> Manifest:
    """Return the binding of a berth's users, of whom there must be at least one, to a Role."""
    subjects = [user_subject(user) for user in access.users]
    subjects += [{"apiGroup": _GROUP, "kind": "Group", "name": group} for group in access.groups]
    for account in access.service_accounts:
        namespace, _, name = account.partition("/")
        subjects.append({"kind": "ServiceAccount", "namespace": namespace, "name": name})
    return binding_of(role, subjects)
