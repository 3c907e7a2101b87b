"""Checks of an engineer's own stack: who applies it, and what identities may do in the berth."""

from collections.abc import Iterable, Mapping
from typing import Any

from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.cluster.api import ClusterApi, ClusterError, in_namespace
from berth.components.cluster.rights import Right, has_right
from berth.components.core.owner import namespace_of
from berth.components.core.project import shown_path
from berth.components.isolation import OWNER_ROLE, USER_ROLE
from berth.stacks.files.stack_file import stack_path
from berth.stacks.settings.engineer import EngineerSettings

ROAD = Topic("road")

_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/rolebindings"

_CHANGE_CLUSTER = "change the RayCluster"
_CREATE_CLUSTERS = "create RayClusters"

_INSIDE: Mapping[str, Right] = {
    "run commands in pods": ("create", "", "pods/exec"),
    _CHANGE_CLUSTER: ("patch", "ray.io", "rayclusters"),
    _CREATE_CLUSTERS: ("create", "ray.io", "rayclusters"),
    "create RayJobs": ("create", "ray.io", "rayjobs"),
}
"""Rights on what runs in a berth, by words for people."""

_LIMITS: Mapping[str, Right] = {
    "change the quota": ("patch", "", "resourcequotas"),
    "change the network policies": ("patch", "networking.k8s.io", "networkpolicies"),
    "change Roles": ("patch", "rbac.authorization.k8s.io", "roles"),
    "delete the namespace": ("delete", "", "namespaces"),
}
"""Rights on what limits a berth, by words for people."""

_OWNERS_RIGHTS = (_CREATE_CLUSTERS, _CHANGE_CLUSTER)
"""Rights that an owner of a berth needs."""


def check_road(stack: str, settings: EngineerSettings, api: ClusterApi) -> list[DoctorFinding]:
    """Return who applies an engineer's stack, and what identities may do in the berth.

    Raises:
        ClusterError: the cluster cannot be asked.
    """
    namespace = namespace_of(settings.name or stack)
    allowed: list[str] = []
    denied: list[str] = []
    for name, right in {**_INSIDE, **_LIMITS}.items():
        if has_right(api, right, namespace):
            allowed.append(name)
        else:
            denied.append(name)
    by_owner = settings.part == "cluster"
    admin = any(name in allowed for name in _LIMITS)
    findings = [
        _who_applies_part(namespace, admin=admin)
        if by_owner
        else _who_applies_all(stack, admin=admin),
        _rights_of_user(namespace, allowed, denied),
        *_rights_of_roles(api, namespace),
    ]
    lacking = [name for name in _OWNERS_RIGHTS if name in denied]
    if by_owner and lacking:
        findings.append(
            ROAD.missing(
                f"in namespace {namespace} you may not {', '.join(lacking)}",
                f"berth up -s {stack}-isolation   # run by an admin: a stack with"
                " `part: isolation`, and you in `access`",
            )
        )
    return findings


def _who_applies_part(namespace: str, *, admin: bool) -> DoctorFinding:
    """Return who applies a stack that has the part `cluster` of a berth."""
    owner = (
        "you apply this stack, which has the RayCluster only; the admins' stack owns namespace"
        f" {namespace}"
    )
    if admin:
        return ROAD.unchecked(f"{owner}, but your rights reach further than the Role {OWNER_ROLE}")
    return ROAD.fine(owner)


def _who_applies_all(stack: str, *, admin: bool) -> DoctorFinding:
    """Return who applies a stack that has all of a berth."""
    if admin:
        return ROAD.warning(
            "you can undo the isolation of berths: only admins and their CI should apply this"
            " stack",
            "",
        )
    file = shown_path(stack_path(stack))
    return ROAD.fine(f"the admins' CI applies this stack, by a pull request with {file}")


def _rights_of_user(namespace: str, allowed: list[str], denied: list[str]) -> DoctorFinding:
    text = f"in namespace {namespace} you may {', '.join(allowed) or 'do nothing'}"
    if denied:
        text += f"; you may not {', '.join(denied)}"
    return ROAD.fine(text)


def _rights_of_roles(api: ClusterApi, namespace: str) -> Iterable[DoctorFinding]:
    """Yield who has the Roles of the berth, where the user may know."""
    try:
        bindings, _ = api.list(in_namespace(namespace, _BINDINGS))
    except ClusterError:
        return
    subjects = {binding["metadata"]["name"]: binding.get("subjects") or () for binding in bindings}
    for role in (USER_ROLE, OWNER_ROLE):
        if role in subjects:
            names = ", ".join(map(_subject, subjects[role]))
            yield ROAD.fine(f"Role {role} of the berth: {names}")


def _subject(subject: dict[str, Any]) -> str:
    name = subject["name"]
    if subject.get("namespace"):
        name = f"{subject['namespace']}/{name}"
    return f"{subject['kind']} {name}"
