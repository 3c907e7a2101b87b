"""What can be told of a pod from the API server's object, in the scheduler's and the kubelet's own words: pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

_STARTING = (None, "ContainerCreating", "PodInitializing")


def why_not_ready(pod: Object, kind: str = "", scaling: Iterable[Object] = (), devices: str = "") -> str | None:
    """Why a pod is not ready; None if it is.

    Args:
        pod: the pod.
        kind: what it is, for people: `worker` makes "worker pod cannot be scheduled: …".
        scaling: what the cluster's autoscaler said of pods, as events.
        devices: why it has not got the devices that it claims, where that is known.
    """
    status = pod.get("status") or {}
    name = f"{kind} pod".lstrip()
    conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    scheduled = conditions.get("PodScheduled", {})
    # While a claim is not even made the scheduler does not look at the pod, and says nothing.
    if scheduled.get("status") == "False" or (devices and not pod["spec"].get("nodeName")):
        told = str(scheduled.get("message") or scheduled.get("reason") or "")
        said = [told, devices, said_by_autoscaler(pod, scaling)]
        return f"{name} cannot be scheduled: {'; '.join(filter(None, said))}"
    if status.get("phase") == "Failed":
        return f"{name} failed: {status.get('message') or status.get('reason') or _exit(pod) or 'no reason given'}"
    for container in _containers(pod):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in _STARTING:
            words = f"{name}, container {container['name']}: {waiting['reason']}: {waiting.get('message', '')}"
            return words.rstrip(": ")
    return f"{name} is not ready yet (phase {status.get('phase', 'unknown')})"


def has_a_node(pod: Object) -> bool:
    """Whether a pod takes room on a node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}


def finds_no_node(pod: Object) -> bool:
    """Whether the scheduler has looked for a node for a pod, and there was none."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def said_by_autoscaler(pod: Object, scaling: Iterable[Object]) -> str:
    """What the cluster's autoscaler said last of a pod: that a node comes, or why none does; "" if it said nothing."""
    about = [event for event in scaling if (event.get("involvedObject") or {}).get("uid") == pod["metadata"].get("uid")]
    if not about:
        return ""
    last = max(about, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    if last.get("reason") == "TriggeredScaleUp":
        return "the autoscaler is adding a node for it"
    return f"the autoscaler: {last.get('message') or last.get('reason')}"


def _exit(pod: Object) -> str:
    """How the container that failed ended, where the pod itself has no reason."""
    for container in _containers(pod):
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            words = f"{ended.get('reason', '')}: {ended.get('message', '')}".strip(": ")
            return f"container {container['name']} ended with {ended['exitCode']}" + (f" ({words})" if words else "")
    return ""


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
