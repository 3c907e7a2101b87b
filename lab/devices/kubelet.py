"""Pod statuses that kubelets write of pods that cannot start.

KWOK makes every pod ready at once; the lab takes that back for a pod that is held.
"""

from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.lab.api import STRATEGIC_PATCH, Api, now, path_of

_CREATES = "ContainerCreating"


@dataclass(frozen=True)
class Hold:
    """Reason for which a pod on a node is not ready."""

    message: str
    event: str = ""  # reason of the kubelet's event; empty where it writes none
    container: str = ""  # the container that does not start; empty for all of them
    reason: str = _CREATES  # the kubelet's word for the state of that container


def show(api: Api, pod: Object, hold: Hold | None) -> None:
    """Show that a pod is held, by its status and an event, or let it become ready."""
    change = status_change(pod, hold, now())
    if (
        change
        and api.patch(f"{path_of(pod)}/status", change, STRATEGIC_PATCH)
        and hold is not None
        and hold.event
    ):
        api.event(pod, "kubelet", "Warning", hold.event, hold.message)


def status_change(pod: Object, hold: Hold | None, time: str) -> Object:
    """Return a patch of a pod's status that shows a hold, or gives the pod back to KWOK."""
    status = pod.get("status") or {}
    if not status.get("podIP") or pod["metadata"].get("deletionTimestamp"):
        return {}
    ready: Object = next(
        (entry for entry in status.get("conditions") or [] if entry["type"] == "Ready"), {}
    )
    if hold is None:
        return {"status": {"podIP": None, "podIPs": None}} if ready.get("status") == "False" else {}
    if ready.get("status") == "False" and ready.get("message") == hold.message:
        return {}
    off = {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": hold.message,
        "lastTransitionTime": time,
    }
    containers = [_waiting(container, hold) for container in pod["spec"]["containers"]]
    conditions = [{"type": kind, **off} for kind in ("Ready", "ContainersReady")]
    return {
        "status": {"phase": "Pending", "conditions": conditions, "containerStatuses": containers}
    }


def _waiting(container: Object, hold: Hold) -> Object:
    waiting = {"reason": _CREATES}
    if container["name"] == hold.container:
        waiting = {"reason": hold.reason, "message": hold.message}
    names = {"name": container["name"], "image": container["image"], "imageID": ""}
    return {**names, "restartCount": 0, "ready": False, "state": {"waiting": waiting}}
