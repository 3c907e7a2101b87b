"""Pods that a kubelet turns away: a container wants more of a shared device than its plugin gives.

Answers to (read): https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/internal/rm/rm.go (the plugin's words)
Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager/manager.go and
    pkg/kubelet/lifecycle/predicate.go (the kubelet's words, reason and phase)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubernetes.utils.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

REASON = "UnexpectedAdmissionError"

_OVER = {"Succeeded", "Failed"}


def arrived(pod: Mapping[str, Any]) -> str:
    """When the kubelet saw the pod: as the scheduler bound it, or as it was made for a node (RFC 3339, to the second)."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if (
            condition["type"] == "PodScheduled"
            and condition["status"] == "True"
            and condition.get("lastTransitionTime")
        ):
            return str(condition["lastTransitionTime"])
    return str(pod["metadata"]["creationTimestamp"])


def refusal(pod: Mapping[str, Any], single: Collection[str], since: str) -> str:
    """The kubelet's words when it turns a pod away; empty where it doesn't.

    The plugin's part is that of k8s-device-plugin v0.20.

    Args:
        pod: a pod that is bound to the node.
        single: resources of which a container may have one at most.
        since: when the node's plugin began to insist on that; pods that were there before go on.
    """
    if (pod.get("status") or {}).get("phase") in _OVER or pod["metadata"].get("deletionTimestamp"):
        return ""
    if arrived(pod) < since:
        return ""
    for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]:
        limits = (container.get("resources") or {}).get("limits") or {}
        for resource in sorted(single):
            # Extended resources are whole numbers, and request and limit are equal.
            count = int(parse_quantity(limits.get(resource) or 0))
            if count > 1:
                return (
                    f'Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for "{resource}": '
                    f"invalid request: maximum request size for shared resources is 1; found {count}, which is unexpected"
                )
    return ""


def failed(message: str, now: str) -> dict[str, Any]:
    """A patch of the status of a pod that was turned away; its containers never ran."""
    off = {"status": "False", "reason": "PodFailed", "lastTransitionTime": now}
    return {
        "status": {
            "phase": "Failed",
            "reason": REASON,
            "message": f"Pod was rejected: {message}",
            "containerStatuses": None,
            "initContainerStatuses": None,
            "conditions": [{"type": "Ready", **off}, {"type": "ContainersReady", **off}],
        }
    }
