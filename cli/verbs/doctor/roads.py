"""Road of an engineer's stack: who applies it, and what each identity may do in the berth."""

from __future__ import annotations

from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.cluster.api import ClusterApi, ClusterError, within
from berth.components.core.owner import namespace_of
from berth.components.isolation import OWNER, USER
from berth.stacks.files.stack_file import shown, stack_path
from berth.stacks.load.stack import EngineerStack, load_stack
from berth.stacks.settings.engineer import EngineerSettings

ROAD = Topic("road")

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/rolebindings"

_INSIDE = {
    "run commands in pods": ("create", "", "pods/exec"),
    "change the RayCluster": ("patch", "ray.io", "rayclusters"),
    "create RayClusters": ("create", "ray.io", "rayclusters"),
    "create RayJobs": ("create", "ray.io", "rayjobs"),
}
"""Rights on what runs in a berth."""

_LIMITS = {
    "change the quota": ("patch", "", "resourcequotas"),
    "change the network policies": ("patch", "networking.k8s.io", "networkpolicies"),
    "change Roles": ("patch", "rbac.authorization.k8s.io", "roles"),
    "delete the namespace": ("delete", "", "namespaces"),
}
"""Rights on what limits a berth."""

_OWNER = ("create RayClusters", "change the RayCluster")


def may(api: ClusterApi, verb: str, group: str, resource: str, namespace: str = "") -> bool:
    """Return whether the user of a connection may do something, in a namespace or in all.

    Args:
        api: connection of the user.
        verb: `create`.
        group: API group; "" for the core one.
        resource: `rayclusters`, or with its part: `pods/exec`.
        namespace: namespace; "" for all.
    """
    resource, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource}
    if part:
        attributes["subresource"] = part
    if namespace:
        attributes["namespace"] = namespace
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool((api.create(_REVIEWS, review).get("status") or {}).get("allowed"))


def load_engineer(stack: str) -> EngineerStack:
    """Return an engineer's own stack, whose settings are valid."""
    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise TypeError(stack)
    return loaded


def check_road(stack: str, settings: EngineerSettings, api: ClusterApi) -> list[Finding]:
    """Report who applies an engineer's stack, and what identities may do in the berth.

    Raises:
        ClusterError: the cluster does not answer.
    """
    namespace = namespace_of(settings.name or stack)
    rights = _INSIDE | _LIMITS
    allowed = {name for name, right in rights.items() if may(api, *right, namespace)}
    findings = [_road(stack, settings, namespace, admin=bool(allowed & _LIMITS.keys()))]
    may_not = ", ".join(name for name in rights if name not in allowed)
    there = f"in namespace {namespace} you may {', '.join(name for name in rights if name in allowed) or 'do nothing'}"
    findings.append(ROAD.fine(f"{there}; you may not {may_not}" if may_not else there))
    findings += [ROAD.fine(text) for text in _others(api, namespace)]
    if settings.part == "cluster" and (lacking := [name for name in _OWNER if name not in allowed]):
        remedy = (
            f"berth up -s {stack}-isolation   # run by an admin: a stack with `part: isolation`, and you in `access`"
        )
        findings.append(ROAD.missing(f"in namespace {namespace} you may not {', '.join(lacking)}", remedy))
    return findings


def _road(stack: str, settings: EngineerSettings, namespace: str, *, admin: bool) -> Finding:
    if settings.part == "cluster":
        text = f"you apply this stack, which has the RayCluster only; the admins' stack owns namespace {namespace}"
        if admin:
            return ROAD.unchecked(f"{text}, but your rights reach further than the Role {OWNER}")
        return ROAD.fine(text)
    if admin:
        return ROAD.fine("you can undo the isolation of berths: only admins and their CI should apply this stack")
    return ROAD.fine(f"the admins' CI applies this stack, by a pull request with {shown(stack_path(stack))}")


def _others(api: ClusterApi, namespace: str) -> list[str]:
    """Return who has the Roles of the berth, where the user may know."""
    try:
        bindings, _ = api.list(within(namespace, _BINDINGS))
    except ClusterError:
        return []
    named = {binding["metadata"]["name"]: binding for binding in bindings}
    return [
        f"Role {role} of the berth: {', '.join(map(_subject, named[role].get('subjects') or ()))}"
        for role in (USER, OWNER)
        if role in named
    ]


def _subject(subject: dict[str, Any]) -> str:
    name = f"{subject['namespace']}/{subject['name']}" if subject.get("namespace") else subject["name"]
    return f"{subject['kind']} {name}"
