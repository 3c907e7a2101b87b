"""Restarts of pods of a RayCluster: what was replaced or started again, when, and why. Pure.

The API server keeps events for an hour by default, and a pod remembers how its containers ended.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import labels_of
from berth.components.core.printable import one_line

REPLACEMENTS = {"fieldSelector": "involvedObject.kind=RayCluster"}
"""Query for KubeRay's events about RayClusters."""

PREEMPTIONS = {"fieldSelector": "reason=Preempted"}
"""Query for the scheduler's events about pods that made room for others."""

RECENT = timedelta(days=1)
"""Time for which a restart is news."""

# KubeRay v1.6.2, ray-operator/controllers/ray/raycluster_controller.go: a pod that failed. Ray's
# autoscaler has pods deleted too, without these words.
_REPLACED = re.compile(
    r"Deleted (?P<role>head|worker) Pod [^/]+/(?P<pod>[^;]+); Pod status: (?P<phase>\w+);"
    r".*Ray container terminated status: (?P<container>.*)",
    flags=re.DOTALL,
)
_ENDED = re.compile(r"ExitCode:(?P<code>\d+),.*?Reason:(?P<reason>\w*)", flags=re.DOTALL)
_LONGEST_REASON = 200


@dataclass(frozen=True)
class Restart:
    """A pod that was replaced, or a container that started again in its pod."""

    at: str
    """When, as ISO 8601."""
    role: str
    """`head` or `worker`."""
    pod: str
    reason: str
    """Why, in the words of the kubelet, the scheduler or the container's runtime."""


def restarts_of(
    pods: Iterable[Object],
    events: Iterable[Object],
    pod_events: Sequence[Object],
    now: datetime,
) -> list[Restart]:
    """Return the recent restarts of a RayCluster, the newest first, with the last one of each pod.

    Args:
        pods: its pods.
        events: KubeRay's events about it.
        pod_events: warnings about its pods, those that are gone too, and their preemptions.
        now: present moment.
    """
    found = [*_replacements(events, pod_events), *_preemptions(pod_events)]
    for pod in pods:
        found += _restarts_in_place(pod)
    newest: dict[str, Restart] = {}
    for restart in sorted(found, key=lambda restart: restart.at):
        newest[restart.pod] = restart
    recent = [one for one in newest.values() if now - datetime.fromisoformat(one.at) < RECENT]
    return sorted(recent, key=lambda restart: restart.at, reverse=True)


def _replacements(events: Iterable[Object], pod_events: Sequence[Object]) -> Iterator[Restart]:
    """Yield the pods that KubeRay replaced after they had failed."""
    for event in events:
        replaced = _REPLACED.match(str(event.get("message")))
        if not replaced:
            continue
        reason = _said_of(replaced["pod"], pod_events) or _how_ended(replaced["container"])
        yield Restart(
            _moment(event),
            replaced["role"],
            replaced["pod"],
            reason or f"phase {replaced['phase']}, and no reason given",
        )


def _preemptions(pod_events: Iterable[Object]) -> Iterator[Restart]:
    """Yield the pods that made room for others; Ray's heads and workers name their role."""
    for event in pod_events:
        if event.get("reason") == "Preempted":
            pod = _subject(event)
            role = "head" if "-head-" in pod else "worker"
            yield Restart(_moment(event), role, pod, _words(event))


def _restarts_in_place(pod: Object) -> Iterator[Restart]:
    """Yield the last restart of a pod's Ray container; its pod stays."""
    role = labels_of(pod).get("ray.io/node-type", "")
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        ended = (status.get("lastState") or {}).get("terminated") or {}
        if status.get("name", "").startswith("ray-") and ended.get("finishedAt"):
            why = f"exit code {ended.get('exitCode')}"
            if ended.get("reason"):
                why = f"{ended['reason']}, {why}"
            yield Restart(ended["finishedAt"], role, pod["metadata"]["name"], why)


def _said_of(pod: str, events: Iterable[Object]) -> str:
    """Return the last warning about a pod: `Evicted: The node was low on resource: …`."""
    about = [event for event in events if _subject(event) == pod]
    return _words(max(about, key=_moment)) if about else ""


def _how_ended(container: str) -> str:
    ended = _ENDED.search(container)
    if not ended:
        return ""
    return f"{ended['reason']}, exit code {ended['code']}".removeprefix(", ")


def _words(event: Object) -> str:
    words = one_line(f"{event.get('reason')}: {event.get('message', '')}".rstrip(": "))
    return words if len(words) <= _LONGEST_REASON else f"{words[: _LONGEST_REASON - 1]}…"


def _subject(event: Object) -> str:
    return str((event.get("involvedObject") or {}).get("name"))


def _moment(event: Object) -> str:
    """Return when an event was last seen; the scheduler's have an `eventTime` alone."""
    fields = ("lastTimestamp", "eventTime", "firstTimestamp")
    stamps = (event.get(field) for field in fields)
    return str(next(filter(None, stamps), event["metadata"].get("creationTimestamp")))
