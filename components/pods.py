"""What can be told of a pod from the API server's object, in the scheduler's and the kubelet's own words: pure."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

_STARTING = (None, "ContainerCreating", "PodInitializing")


def why_not_ready(pod: Object, kind: str = "") -> str | None:
    """Why a pod is not ready; None if it is.

    Args:
        pod: the pod.
        kind: what it is, for people: `worker` makes "worker pod cannot be scheduled: …".
    """
    status = pod.get("status") or {}
    name = f"{kind} pod".lstrip()
    conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"{name} cannot be scheduled: {scheduled.get('message') or scheduled.get('reason')}"
    if status.get("phase") == "Failed":
        return f"{name} failed: {status.get('message') or status.get('reason') or _exit(pod) or 'no reason given'}"
    for container in _containers(pod):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in _STARTING:
            words = f"{name}, container {container['name']}: {waiting['reason']}: {waiting.get('message', '')}"
            return words.rstrip(": ")
    return f"{name} is not ready yet (phase {status.get('phase', 'unknown')})"


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
