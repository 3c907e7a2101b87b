"""`berth diagnose`: one file of parts without secrets; a part may fail without the others."""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.plan import planned_update, settings_as_json
from berth.cli.reach.berths import LiveBerth, berth_and_stack, live_berth
from berth.cli.reach.current_work import running_on
from berth.cli.reach.environment import NotUpError
from berth.cli.reach.fleet import fleet_of
from berth.cli.reach.head import read_token
from berth.cli.reach.kubectl import write_private
from berth.cli.reach.operator_log import operator_lines
from berth.cli.shell.console import err, print_result
from berth.cli.shell.programs import output_of
from berth.cli.verbs.diagnose.secrets import (
    cleaned,
    scrubbed,
    secrets_of_environment,
    secrets_of_kubeconfig,
)
from berth.components.cluster import inventory
from berth.components.cluster.api import EVENTS, NODES, PODS, ClusterApi, Object, in_namespace
from berth.components.cluster.pods import runs_here
from berth.components.core import fast_yaml
from berth.components.core.errors import BadInputError, BerthError
from berth.components.ray.conditions.cluster import condition_of
from berth.components.ray.live_objects import LiveObjects
from berth.components.ray.reasons import reasons_of
from berth.stacks.files import stack_file

_SUMMARY = (
    "Secrets and kubeconfigs were not gathered. Values of environment variables, and what looks"
    " like a secret, were removed."
)

LOG_LINES = 400
"""Number of last lines of each log."""

_TABLES = fast_yaml.load_beside(__file__)

# Failures of one part; anything else is a bug of berth.
_FAILURES = (BerthError, OSError, ValueError)


@dataclass(frozen=True)
class Part:
    """A part of a diagnosis."""

    title: str
    text: str
    """Text of the part; for a missing one the reason."""
    language: str = "text"
    missing: bool = False
    lost: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of environment variables that it lost, and that no other part may show."""


def gathered(title: str, gather: Callable[[], Any]) -> Part:
    """Gather one part; a failure becomes its text."""
    try:
        found = gather()
    except _FAILURES as error:
        return Part(title, str(error) or type(error).__name__, missing=True)
    if isinstance(found, str):
        return Part(title, found)
    shown, lost = cleaned(found)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=10_000)
    return Part(title, text, "yaml", lost=frozenset(lost))


def versions(api: ClusterApi | None) -> dict[str, Any]:
    """Return the versions of packages, programs and the API server."""

    def of_kubectl() -> Any:
        return json.loads(output_of("kubectl", "version", "--client", "--output=json"))[
            "clientVersion"
        ]["gitVersion"]

    questions: dict[str, Callable[[], Any]] = {
        name: partial(version, name) for name in _TABLES["packages"]
    }
    questions |= {
        "pulumi (program)": partial(output_of, "pulumi", "version"),
        "kubectl (program)": of_kubectl,
    }
    if api is not None:
        questions["Kubernetes (server)"] = lambda: (api.get("/version") or {}).get(
            "gitVersion", "?"
        )
    found: dict[str, Any] = {"python": sys.version.split()[0], "system": platform.platform()}
    for name, question in questions.items():
        try:
            found[name] = question()
        except PackageNotFoundError:
            found[name] = "not installed"
        except _FAILURES as error:
            found[name] = str(error)
    return found


def _plan(stack: str) -> Part:
    return gathered(f"Plan of stack {stack}", lambda: report_document(planned_update(stack).report))


def of_berth(berth: LiveBerth, *, plan: bool) -> list[Part]:
    """Gather the parts about a berth that is up."""
    api, namespace = berth.api, berth.namespace
    pods: list[Object] = []

    def list_pods() -> list[Object]:
        pods.extend(berth.pods())
        return [_object(pod) for pod in pods]

    found = [
        gathered(
            "Why it is not ready",
            lambda: (
                "\n".join(reasons_of(LiveObjects(api, berth.key[0]), berth.key))
                or "nothing: the berth is ready"
            ),
        ),
        gathered("Status", lambda: fleet_of(berth.environment.stack).as_json()),
        gathered("What runs on it", lambda: _running(berth)),
    ]
    if plan:
        found.append(_plan(berth.stack))
    found += [
        gathered("RayCluster", lambda: _object(berth.cluster)),
        gathered("Pods", list_pods),
        gathered("Events", lambda: _events(api, namespace)),
        gathered("Nodes of its pods", lambda: _nodes(api, pods)),
        gathered("Resource claims", lambda: _claims(api, namespace)),
        *(
            gathered(path.rpartition("/")[2], partial(_list, api, in_namespace(namespace, path)))
            for path in _TABLES["in_namespace"]
        ),
        gathered("The operator's log, lines about it", lambda: _operator(berth)),
    ]
    return found + [
        gathered(f"Log of {pod['metadata']['name']}", partial(_log, berth, pod)) for pod in pods
    ]


def _object(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


def _list(api: ClusterApi, path: str) -> list[Object]:
    found, _ = api.list(path)
    return [_object(item) for item in found]


def _events(api: ClusterApi, namespace: str) -> list[str]:
    """Return the events of a namespace, a line each, those without a time first."""
    found = [
        (event.get("lastTimestamp") or event.get("eventTime"), event)
        for event in api.list(in_namespace(namespace, EVENTS))[0]
    ]
    return [
        _event(when or "?", event)
        for when, event in sorted(found, key=lambda entry: str(entry[0] or ""))
    ]


def _event(when: str, event: Object) -> str:
    about = event.get("involvedObject") or {}
    times = event.get("count") or 1
    what = (
        f"{event.get('type')} {about.get('kind')}/{about.get('name')} {event.get('reason')}:"
        f" {event.get('message')}"
    )
    return f"{when} {what}{f' ({times} times)' if times > 1 else ''}"


def _nodes(api: ClusterApi, pods: Iterable[Object]) -> list[Object]:
    names = {pod["spec"].get("nodeName") for pod in pods}
    found, _ = api.list(NODES)
    return [
        {
            "name": node["metadata"]["name"],
            "labels": node["metadata"].get("labels"),
            "taints": node["spec"].get("taints"),
            "unschedulable": node["spec"].get("unschedulable", False),
            "allocatable": node["status"].get("allocatable"),
            "conditions": [
                f"{condition['type']}={condition['status']}: {condition.get('message', '')}"
                for condition in node["status"].get("conditions") or []
            ],
            "versions": {
                key: (node["status"].get("nodeInfo") or {}).get(key)
                for key in ("kubeletVersion", "kernelVersion", "osImage")
            },
        }
        for node in found
        if node["metadata"]["name"] in names
    ]


def _claims(api: ClusterApi, namespace: str) -> list[Object]:
    version = inventory.served_version(api)
    return (
        _list(api, in_namespace(namespace, f"{inventory.GROUP}/{version}/resourceclaims"))
        if version
        else []
    )


def _running(berth: LiveBerth) -> dict[str, Any]:
    running = running_on(berth)
    return {
        "state": condition_of(berth.cluster).state,
        "pods": running.pods,
        "jobs": running.work,
        "unknown": running.unknown,
        "note": running.note,
    }


def _operator(berth: LiveBerth) -> str:
    lines = list(operator_lines(berth, {"tailLines": str(50 * LOG_LINES)}))
    return "\n".join(lines[-LOG_LINES:]) or "nothing about it"


def _log(berth: LiveBerth, pod: Object) -> str:
    if berth.is_simulated(pod) and not runs_here(pod):
        return "on a simulated node: it has no log"
    container = pod["spec"]["containers"][0]["name"]
    path = f"{in_namespace(berth.namespace, PODS)}/{pod['metadata']['name']}/log"
    return (
        berth.api.text(path, container=container, tailLines=str(LOG_LINES))
        or f"the log of {container} is empty"
    )


def diagnose(
    name: str | None, stack: str | None, output: Path | None, *, plan: bool, as_json: bool
) -> int:
    """Write the diagnosis of a berth; return the exit code."""
    name, stack = berth_and_stack(name, stack)
    now = datetime.now(tz=UTC)
    path = output or Path(f"berth-{name}-{now:%Y%m%d-%H%M%S}.md")
    parts, known, code = gather(name, stack, plan=plan)
    lost = {value for part in parts for value in part.lost}
    text = scrubbed(rendered(name, stack, parts, now), {*known, *lost})
    if str(path) == "-":
        sys.stdout.write(text)
        return code
    path.unlink(missing_ok=True)
    write_private(path, text)
    missing = [part for part in parts if part.missing]
    titles = {"parts": [part.title for part in parts], "missing": [part.title for part in missing]}
    size = len(text.encode()) // 1024 + 1
    shown = f"{path} has {len(parts)} parts, {size} KiB; look through it before you send it on"
    print_result({"name": name, "file": str(path), **titles}, shown, as_json=as_json)
    for part in missing:
        err.print(f"could not be gathered: {part.title}: {part.text}", style="yellow")
    return code


def gather(name: str, stack: str, *, plan: bool) -> tuple[list[Part], list[str], int]:
    """Return the parts, known secrets, and the exit code: 0 if the berth could be asked."""
    known = secrets_of_environment(os.environ)
    parts = [_settings(stack)]
    try:
        berth = live_berth(name, stack)
    except BerthError as error:
        if isinstance(error, BadInputError) and not isinstance(error, NotUpError):
            raise
        parts.append(Part("The berth", str(error), missing=True))
        if plan:
            part = _plan(stack)
            parts.append(
                replace(part, text="not made, for the same reason")
                if part.text == str(error)
                else part
            )
        return [*parts, gathered("Versions", lambda: versions(None))], known, error.code
    known += secrets_of_kubeconfig(yaml.safe_load(berth.environment.kubeconfig))
    with suppress(BerthError):
        known += filter(None, [read_token(berth)])
    others = {berth.stack, berth.environment.stack} - {stack}
    parts += [_settings(other) for other in sorted(others) if stack_file.stack_path(other).exists()]
    return (
        [*parts, *of_berth(berth, plan=plan), gathered("Versions", lambda: versions(berth.api))],
        known,
        0,
    )


def _settings(stack: str) -> Part:
    """Gather a stack's settings as they are written, without comments."""

    def gather() -> dict[str, Any]:
        return {
            f"{stack_file.NAMESPACE}:{key}": value for key, value in settings_as_json(stack).items()
        }

    return gathered(f"Settings of stack {stack}", gather)


def rendered(name: str, stack: str, parts: list[Part], now: datetime) -> str:
    """Return the parts as one text."""
    lines = [
        f"# LiveBerth {name}",
        "",
        f"{now:%Y-%m-%d %H:%M:%S} UTC, by way of stack {stack}. {_SUMMARY}",
        "",
    ]
    if missing := [part for part in parts if part.missing]:
        lines += [
            "Could not be gathered:",
            "",
            *(f"- {part.title}: {part.text}" for part in missing),
            "",
        ]
    for part in parts:
        if not part.missing:
            fence = "`" * 4
            lines += [
                f"## {part.title}",
                "",
                f"{fence}{part.language}",
                part.text.rstrip("\n"),
                fence,
                "",
            ]
    return "\n".join(lines)
