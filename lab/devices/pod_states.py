"""Status of an operand's pod that is not ready: KWOK makes every pod ready at once, and the lab takes that back.

Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/kubelet_pods.go (phase and conditions of a pod that
    initializes or whose container does not start)
Answers to (real): KWOK v0.7.0, stage `pod-ready`: it makes a pod ready that has no IP address, and leaves one alone that has one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.lab.devices.operands import CRASHES, CREATES, PULLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.devices.operands import Hold

EVENTS = {CRASHES: "BackOff", CREATES: "FailedCreatePodSandBox", PULLS: "Failed"}
"""Reason of the kubelet's event, by the reason that the container shows."""


def change(pod: Mapping[str, Any], hold: Hold | None, now: str) -> dict[str, Any]:
    """A patch of a pod's status that shows the hold, or gives the pod back to KWOK; empty where nothing is to be done.

    Args:
        pod: the pod.
        hold: why it is not ready; None where nothing keeps it.
        now: the time (RFC 3339).
    """
    status = pod.get("status") or {}
    if not status.get("podIP") or pod["metadata"].get("deletionTimestamp"):
        return {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    ready = conditions.get("Ready", {})
    if hold is None:
        return {"status": {"podIP": None, "podIPs": None}} if ready.get("status") == "False" else {}
    if ready.get("status") == "False" and ready.get("message") == hold.message:
        return {}
    return {"status": _held(pod["spec"], hold, now)}


def _held(spec: Mapping[str, Any], hold: Hold, now: str) -> dict[str, Any]:
    init = [each["name"] for each in spec.get("initContainers") or []]
    starts = hold.container in {each["name"] for each in spec["containers"]} and hold.reason != PULLS
    off = {"status": "False", "reason": "ContainersNotReady", "message": hold.message, "lastTransitionTime": now}
    initialized = {"status": "True" if hold.container not in init and hold.container else "False"}
    passed = True
    statuses: dict[str, list[dict[str, Any]]] = {}
    for part in ("initContainers", "containers"):
        statuses[part] = []
        for container in spec.get(part) or []:
            first = part == "initContainers"
            passed = passed and bool(hold.container) and container["name"] != hold.container if first else passed
            state = _state(container["name"], hold, now, init=first, passed=passed)
            statuses[part].append(
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "restartCount": 0,
                    "ready": "terminated" in state or ("running" in state and not first),
                    "state": state,
                }
            )
    return {
        "phase": "Running" if starts else "Pending",
        "conditions": [
            {"type": "Ready", **off},
            {"type": "ContainersReady", **off},
            {"type": "Initialized", **initialized, "lastTransitionTime": now},
        ],
        "initContainerStatuses": statuses["initContainers"],
        "containerStatuses": statuses["containers"],
    }


def _state(name: str, hold: Hold, now: str, *, init: bool, passed: bool) -> dict[str, Any]:
    """State of one container; `passed` says that every init container before it has ended."""
    if name == hold.container:
        if hold.reason:
            return {"waiting": {"reason": hold.reason, "message": hold.message}}
        return {"running": {"startedAt": now}}
    if not passed:
        return {"waiting": {"reason": "PodInitializing" if hold.container else hold.reason}}
    if init:
        return {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    return {"running": {"startedAt": now}}
