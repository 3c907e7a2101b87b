"""Rights in a cluster: those of an update, and those of an engineer in a berth."""

from collections.abc import Iterable
from typing import Any

from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.cli.verbs.doctor.registered import WouldFailError, types_of
from berth.components.cluster.api import ClusterApi, ClusterError, in_namespace
from berth.components.cluster.rights import Right, has_right
from berth.components.core import fast_yaml
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of
from berth.components.core.project import shown_path
from berth.components.core.words import plural
from berth.components.isolation import OWNER_ROLE, USER_ROLE
from berth.stacks.files.stack_file import stack_path
from berth.stacks.settings.engineer import EngineerSettings

CLUSTER, ROAD = Topic("cluster"), Topic("road")

_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/rolebindings"
_TABLES: dict[str, Any] = fast_yaml.load_beside(__file__)


def rights_for(types: Iterable[str]) -> list[Right]:
    """Return the rights that an update needs on a cluster."""
    rights: set[Right] = set(map(tuple, _TABLES["to_wait"]))
    for registered in types:
        _, group_version, kind = registered.split(":")
        group = group_version.partition("/")[0]
        if group == "helm.sh":
            rights.update(map(tuple, _TABLES["by_charts"]))
        else:
            rights.add(("create", "" if group == "core" else group, plural(kind.lower())))
    return sorted(rights)


def check_rights(
    api: ClusterApi, stack: str, outputs: dict[str, Any] | None, remedy: str
) -> Finding:
    """Check the rights of an update of a stack."""
    try:
        rights = rights_for(types_of(stack, outputs))
    except WouldFailError as error:
        return CLUSTER.missing(str(error))
    except BerthError as error:
        return CLUSTER.found("rights-unknown", reason=error)
    lacking = [f"{right[0]} {right[2]}" for right in rights if not has_right(api, right)]
    return (
        CLUSTER.found("no-rights", lacking=", ".join(lacking), remedy=remedy)
        if lacking
        else CLUSTER.found("rights")
    )


def check_road(stack: str, settings: EngineerSettings, api: ClusterApi) -> list[Finding]:
    """Report who applies an engineer's stack, and what identities may do in the berth."""
    namespace = namespace_of(settings.name or stack)
    rights = _TABLES["inside"] | _TABLES["limits"]
    may_do = {name: has_right(api, tuple(right), namespace) for name, right in rights.items()}
    admin = any(may_do[name] for name in _TABLES["limits"])
    allowed = ", ".join(name for name in may_do if may_do[name]) or "do nothing"
    denied = ", ".join(name for name in may_do if not may_do[name])
    key = "rights-and-limits" if denied else "rights"
    findings = [
        ROAD.found("own-and-more" if admin else "own", namespace=namespace, role=OWNER_ROLE)
        if settings.part == "cluster"
        else ROAD.found("admin" if admin else "ci", file=shown_path(stack_path(stack))),
        ROAD.found(key, namespace=namespace, allowed=allowed, denied=denied),
        *_bound(api, namespace),
    ]
    if settings.part == "cluster" and (
        lacking := [name for name in _TABLES["owner"] if not may_do[name]]
    ):
        findings.append(
            ROAD.found("lacking", namespace=namespace, lacking=", ".join(lacking), stack=stack)
        )
    return findings


def _bound(api: ClusterApi, namespace: str) -> Iterable[Finding]:
    """Yield who has the Roles of the berth, where the user may know."""
    try:
        bindings, _ = api.list(in_namespace(namespace, _BINDINGS))
    except ClusterError:
        return
    named = {binding["metadata"]["name"]: binding.get("subjects") or () for binding in bindings}
    for role in (USER_ROLE, OWNER_ROLE):
        if role in named:
            yield ROAD.found("bound", role=role, subjects=", ".join(map(_subject, named[role])))


def _subject(subject: dict[str, Any]) -> str:
    name = (
        f"{subject['namespace']}/{subject['name']}" if subject.get("namespace") else subject["name"]
    )
    return f"{subject['kind']} {name}"
