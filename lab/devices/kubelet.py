"""Pod statuses that kubelets write: pods that are not ready, and pods that are turned away.

KWOK makes every pod ready at once; the lab takes that back for a pod that is held. A kubelet turns
a pod away whose container asks for more of a shared device than the device plugin gives.

Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/kubelet_pods.go
    (phase and conditions of a pod that initializes or whose container does not start)
Answers to (real): KWOK v0.7.0, stage `pod-ready`: it makes a pod ready that has no IP address, and
    leaves one alone that has one
Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/internal/rm/rm.go (the
    plugin's words)
Answers to (read):
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager/manager.go
    and pkg/kubelet/lifecycle/predicate.go (the kubelet's words, reason and phase)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.api import Object
from berth.components.core.types import parse_quantity

CRASHES, CREATES, PULLS = "CrashLoopBackOff", "ContainerCreating", "ImagePullBackOff"
UNSET = "CreateContainerConfigError"
EVENTS = {CRASHES: "BackOff", CREATES: "FailedCreatePodSandBox", PULLS: "Failed"}
"""Reason of the kubelet's event, by the reason that the container shows."""
REFUSED = "UnexpectedAdmissionError"
"""Reason of a pod that is turned away."""


@dataclass(frozen=True)
class Hold:
    """Reason for which a pod on a node is not ready."""

    container: str  # empty where none has been started
    reason: str  # the kubelet's word for the container's state; empty for an init container that waits
    message: str
    event: str = ""  # reason of the kubelet's event, where it is not the usual one for `reason`


def variable(pod: Mapping[str, Any], name: str) -> str:
    """Return the value of a variable of a pod's main container; empty without it."""
    env = pod["spec"]["containers"][0].get("env") or []
    return next((str(entry.get("value") or "") for entry in env if entry["name"] == name), "")


def status_change(pod: Object, hold: Hold | None, now: str) -> Object:
    """Return a patch of a pod's status that shows a hold, or gives the pod back to KWOK."""
    status = pod.get("status") or {}
    if not status.get("podIP") or pod["metadata"].get("deletionTimestamp"):
        return {}
    ready: Object = next((entry for entry in status.get("conditions") or [] if entry["type"] == "Ready"), {})
    if hold is None:
        return {"status": {"podIP": None, "podIPs": None}} if ready.get("status") == "False" else {}
    if ready.get("status") == "False" and ready.get("message") == hold.message:
        return {}
    return {"status": _held(pod["spec"], hold, now)}


def _held(spec: Object, hold: Hold, now: str) -> Object:
    init = spec.get("initContainers") or []
    before = [container["name"] for container in init]
    off = {"status": "False", "reason": "ContainersNotReady", "message": hold.message, "lastTransitionTime": now}
    # Every init container before the next one has ended.
    passed, first = bool(hold.container), []
    for container in init:
        passed = passed and container["name"] != hold.container
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        first.append(_container(container, _state(container, hold, now, ended if passed else None), running=False))
    started: Object | None = {"running": {"startedAt": now}} if passed else None
    main = [
        _container(container, _state(container, hold, now, started), running=True) for container in spec["containers"]
    ]
    initialized = {"status": "True" if passed else "False", "lastTransitionTime": now}
    starts = hold.container and hold.container not in before and hold.reason not in (PULLS, UNSET)
    return {
        "phase": "Running" if starts else "Pending",
        "conditions": [
            {"type": "Ready", **off},
            {"type": "ContainersReady", **off},
            {"type": "Initialized", **initialized},
        ],
        "initContainerStatuses": first,
        "containerStatuses": main,
    }


def _state(container: Object, hold: Hold, now: str, otherwise: Object | None) -> Object:
    """State of a container; `otherwise` is that of one that is not held, None before its start."""
    if container["name"] == hold.container:
        waiting = {"reason": hold.reason, "message": hold.message}
        return {"waiting": waiting} if hold.reason else {"running": {"startedAt": now}}
    return otherwise or {"waiting": {"reason": "PodInitializing" if hold.container else hold.reason}}


def _container(container: Object, state: Object, *, running: bool) -> Object:
    ready = "terminated" in state or (running and "running" in state)
    names = {"name": container["name"], "image": container["image"], "imageID": ""}
    return {**names, "restartCount": 0, "ready": ready, "state": state}


def _arrived(pod: Object) -> str:
    """Return when a pod was bound, or created for a node (RFC 3339, to the second)."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        bound = condition["type"] == "PodScheduled" and condition["status"] == "True"
        if bound and condition.get("lastTransitionTime"):
            return str(condition["lastTransitionTime"])
    return str(pod["metadata"]["creationTimestamp"])


def refusal(pod: Object, single: Collection[str], since: str) -> str:
    """Return the kubelet's words when it turns a bound pod away; empty where it does not.

    A container may have one at most of the resources `single`. The node's plugin insists on that
    since a certain time; earlier pods go on.
    """
    over = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    if over or pod["metadata"].get("deletionTimestamp") or _arrived(pod) < since:
        return ""
    for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]:
        limits = (container.get("resources") or {}).get("limits") or {}
        for resource in sorted(single):
            # Extended resources are whole numbers, and request and limit are equal.
            count = int(parse_quantity(str(limits.get(resource) or 0)))
            if count > 1:
                return (
                    "Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for "
                    f'"{resource}": invalid request: maximum request size for shared resources is 1; found {count}, '
                    "which is unexpected"
                )
    return ""


def rejection(message: str, now: str) -> Object:
    """Return a patch of the status of a pod that was turned away; its containers never ran."""
    off = {"status": "False", "reason": "PodFailed", "lastTransitionTime": now}
    return {
        "status": {
            "phase": "Failed",
            "reason": REFUSED,
            "message": f"Pod was rejected: {message}",
            "containerStatuses": None,
            "initContainerStatuses": None,
            "conditions": [{"type": "Ready", **off}, {"type": "ContainersReady", **off}],
        }
    }
