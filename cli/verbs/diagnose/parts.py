"""Parts of a diagnosis: any of them may fail without the others, and none needs another."""

import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import yaml

from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.plan import planned_update, settings_as_json
from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.current_work import running_on
from berth.cli.reach.fleet import fleet_of
from berth.cli.reach.operator_log import operator_lines
from berth.cli.shell.programs import output_of
from berth.cli.verbs.diagnose.secrets import cleaned
from berth.components.cluster import inventory
from berth.components.cluster.api import EVENTS, NODES, PODS, ClusterApi, Object, in_namespace
from berth.components.cluster.pods import runs_here
from berth.components.core.errors import BerthError
from berth.components.ray.live import LiveObjects, condition_of, reasons_of
from berth.stacks.files import stack_file

LOG_LINES = 400
"""Number of last lines of each log."""

_PACKAGES = ("berth-gpu", "pulumi", "pulumi-kubernetes", "pulumi-gcp", "kubernetes", "pydantic")

# Failures of one part; anything else is a bug of berth.
_FAILURES = (BerthError, OSError, ValueError)


@dataclass(frozen=True)
class DiagnosisPart:
    """Part of a diagnosis.

    Attributes:
        title: heading of the part.
        text: text of the part; for a missing one the reason.
        language: language of the text, for its fence in Markdown.
        missing: whether the part could not be gathered.
        lost: values of environment variables that the part lost, and that no other may show.
    """

    title: str
    text: str
    language: str = "text"
    missing: bool = False
    lost: frozenset[str] = field(default=frozenset(), repr=False)


def gathered_part(title: str, gather: Callable[[], Any]) -> DiagnosisPart:
    """Return a part with what a function returns; a failure becomes the part's text."""
    try:
        content = gather()
    except _FAILURES as error:
        return DiagnosisPart(title, str(error) or type(error).__name__, missing=True)
    if isinstance(content, str):
        return DiagnosisPart(title, content)
    shown, lost = cleaned(content)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=10_000)
    return DiagnosisPart(title, text, "yaml", lost=frozenset(lost))


def versions_part(api: ClusterApi | None) -> DiagnosisPart:
    """Return the versions of packages, programs and the API server."""
    return gathered_part("Versions", lambda: _versions(api))


def settings_part(stack: str) -> DiagnosisPart:
    """Return a stack's settings as they are written, without comments."""
    return gathered_part(f"Settings of stack {stack}", lambda: _settings(stack))


def plan_part(stack: str) -> DiagnosisPart:
    """Return what an update of a stack would do."""
    return gathered_part(
        f"Plan of stack {stack}", lambda: report_document(planned_update(stack).report)
    )


def berth_parts(berth: LiveBerth, *, plan: bool) -> list[DiagnosisPart]:
    """Return the parts about a berth that is up."""
    parts = [gathered_part(title, partial(part, berth)) for title, part in OVERVIEW_PARTS.items()]
    if plan:
        parts.append(plan_part(berth.stack))
    parts += [gathered_part(title, partial(part, berth)) for title, part in OBJECT_PARTS.items()]
    return parts + _log_parts(berth)


def _versions(api: ClusterApi | None) -> dict[str, str]:
    versions = {"python": sys.version.split()[0], "system": platform.platform()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    versions["pulumi (program)"] = _version_or_reason(lambda: output_of("pulumi", "version"))
    versions["kubectl (program)"] = _version_or_reason(_kubectl_version)
    if api is not None:
        versions["Kubernetes (server)"] = _version_or_reason(lambda: _server_version(api))
    return versions


def _version_or_reason(question: Callable[[], str]) -> str:
    """Return a version, or why it is unknown."""
    try:
        return question()
    except _FAILURES as error:
        return str(error)


def _kubectl_version() -> str:
    answer = json.loads(output_of("kubectl", "version", "--client", "--output=json"))
    return str(answer["clientVersion"]["gitVersion"])


def _server_version(api: ClusterApi) -> str:
    return str((api.get("/version") or {}).get("gitVersion", "?"))


def _settings(stack: str) -> dict[str, Any]:
    settings = settings_as_json(stack)
    return {f"{stack_file.NAMESPACE}:{key}": value for key, value in settings.items()}


def _why_not_ready(berth: LiveBerth) -> str:
    reasons = reasons_of(LiveObjects(berth.api, berth.namespace), berth.key)
    return "\n".join(reasons) or "nothing: the berth is ready"


def _status(berth: LiveBerth) -> dict[str, Any]:
    return fleet_of(berth.environment.stack).as_json()


def _current_work(berth: LiveBerth) -> dict[str, Any]:
    running = running_on(berth)
    return {
        "state": condition_of(berth.cluster).state,
        "pods": running.pods,
        "jobs": running.work,
        "unknown": running.unknown,
        "note": running.note,
    }


def _ray_cluster(berth: LiveBerth) -> Object:
    return _shown_object(berth.cluster)


def _pods(berth: LiveBerth) -> list[Object]:
    return [_shown_object(pod) for pod in berth.pods()]


def _events(berth: LiveBerth) -> list[str]:
    """Return the events of a berth's namespace, a line each, those without a time first."""
    events, _ = berth.api.list(in_namespace(berth.namespace, EVENTS))
    return [_event_line(event) for event in sorted(events, key=_time_of)]


def _time_of(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _event_line(event: Object) -> str:
    about = event.get("involvedObject") or {}
    what = (
        f"{event.get('type')} {about.get('kind')}/{about.get('name')} {event.get('reason')}:"
        f" {event.get('message')}"
    )
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return f"{_time_of(event) or '?'} {what}{times}"


def _nodes_of_pods(berth: LiveBerth) -> list[Object]:
    names = {pod["spec"].get("nodeName") for pod in berth.pods()}
    nodes, _ = berth.api.list(NODES)
    return [_shown_node(node) for node in nodes if node["metadata"]["name"] in names]


def _shown_node(node: Object) -> Object:
    status = node["status"]
    conditions = [
        f"{condition['type']}={condition['status']}: {condition.get('message', '')}"
        for condition in status.get("conditions") or []
    ]
    info = status.get("nodeInfo") or {}
    return {
        "name": node["metadata"]["name"],
        "labels": node["metadata"].get("labels"),
        "taints": node["spec"].get("taints"),
        "unschedulable": node["spec"].get("unschedulable", False),
        "allocatable": status.get("allocatable"),
        "conditions": conditions,
        "versions": {key: info.get(key) for key in ("kubeletVersion", "kernelVersion", "osImage")},
    }


def _resource_claims(berth: LiveBerth) -> list[Object]:
    served = inventory.served_version(berth.api)
    if not served:
        return []
    claims = f"{inventory.GROUP}/{served}/resourceclaims"
    return _objects_at(berth.api, in_namespace(berth.namespace, claims))


def _objects_at(api: ClusterApi, path: str) -> list[Object]:
    objects, _ = api.list(path)
    return [_shown_object(item) for item in objects]


def _shown_object(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


def _operator_log(berth: LiveBerth) -> str:
    lines = list(operator_lines(berth, {"tailLines": str(50 * LOG_LINES)}))
    return "\n".join(lines[-LOG_LINES:]) or "nothing about it"


def _of_kind(path: str) -> Callable[[LiveBerth], list[Object]]:
    """Return the function of a part that has the objects of a kind in a berth's namespace."""
    return lambda berth: _objects_at(berth.api, in_namespace(berth.namespace, path))


OVERVIEW_PARTS: Mapping[str, Callable[[LiveBerth], Any]] = {
    "Why it is not ready": _why_not_ready,
    "Status": _status,
    "What runs on it": _current_work,
}
"""Parts that say how the berth is, by their titles."""

OBJECT_PARTS: Mapping[str, Callable[[LiveBerth], Any]] = {
    "RayCluster": _ray_cluster,
    "Pods": _pods,
    "Events": _events,
    "Nodes of its pods": _nodes_of_pods,
    "Resource claims": _resource_claims,
    "services": _of_kind("/api/v1/services"),
    "resourcequotas": _of_kind("/api/v1/resourcequotas"),
    "limitranges": _of_kind("/api/v1/limitranges"),
    "persistentvolumeclaims": _of_kind("/api/v1/persistentvolumeclaims"),
    "networkpolicies": _of_kind("/apis/networking.k8s.io/v1/networkpolicies"),
    "jobs": _of_kind("/apis/batch/v1/jobs"),
    "rayjobs": _of_kind("/apis/ray.io/v1/rayjobs"),
    "rayservices": _of_kind("/apis/ray.io/v1/rayservices"),
    "The operator's log, lines about it": _operator_log,
}
"""Parts that have objects of the cluster and the operator's log, by their titles."""


def _log_parts(berth: LiveBerth) -> list[DiagnosisPart]:
    """Return a part for the log of each pod."""
    try:
        pods = berth.pods()
    except _FAILURES as error:
        return [DiagnosisPart("Logs of its pods", str(error), missing=True)]
    return [
        gathered_part(f"Log of {pod['metadata']['name']}", partial(_log, berth, pod))
        for pod in pods
    ]


def _log(berth: LiveBerth, pod: Object) -> str:
    if berth.is_simulated(pod) and not runs_here(pod):
        return "on a simulated node: it has no log"
    container = pod["spec"]["containers"][0]["name"]
    path = f"{in_namespace(berth.namespace, PODS)}/{pod['metadata']['name']}/log"
    log = berth.api.text(path, container=container, tailLines=str(LOG_LINES))
    return log or f"the log of {container} is empty"
