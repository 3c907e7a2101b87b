"""State of pods and nodes, in the scheduler's and the kubelet's own words. Pure."""

from collections.abc import Iterable

from berth.components.cluster.api import Object
from berth.components.core.owner import OWNER_LABELS

SYNCED = "synced"
"""Key of a value in a Secret that GKE writes from Secret Manager."""

LOCAL_RAY = "lab.berth/ray"
"""Annotation of a simulated head whose Ray runs on the lab's machine: the dashboard's address."""

_STARTING = (None, "ContainerCreating", "PodInitializing")


def why_not_ready(pod: Object, kind: str = "", scaling: Iterable[Object] = (), devices: str = "") -> str | None:
    """Return why a pod is not ready; None if it is.

    `kind` is a word for people: "worker pod cannot be scheduled: …"; `scaling` has events of the
    cluster's autoscaler, `devices` why the pod lacks devices, where that is known.
    """
    status = pod.get("status") or {}
    name = f"{kind} pod".lstrip()
    conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    scheduled = conditions.get("PodScheduled", {})
    # The scheduler does not look at a pod whose claims do not exist yet, and sets no condition.
    if scheduled.get("status") == "False" or (devices and not pod["spec"].get("nodeName")):
        message = str(scheduled.get("message") or scheduled.get("reason") or "")
        reasons = [message, devices, said_by_autoscaler(pod, scaling)]
        return f"{name} cannot be scheduled: {'; '.join(filter(None, reasons))}"
    if status.get("phase") == "Failed":
        return f"{name} failed: {status.get('message') or status.get('reason') or _exit(pod) or 'no reason given'}"
    for container in _containers(pod):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in _STARTING:
            words = f"{name}, container {container['name']}: {waiting['reason']}: {waiting.get('message', '')}"
            return words.rstrip(": ") + _command_for_secret(pod, str(waiting.get("message") or ""))
    return f"{name} is not ready yet (phase {status.get('phase', 'unknown')})"


def _command_for_secret(pod: Object, message: str) -> str:
    """Return the command that helps with a secret value without which a container does not start.

    The kubelet's messages: v1.36.3, pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables.
    """
    labels = pod["metadata"].get("labels") or {}
    owner = next((labels[label] for label in OWNER_LABELS.values() if label in labels), "")
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            at = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
            absent = (f'secret "{at.get("name")}" not found', f"couldn't find key {at.get('key')} in Secret ")
            if owner and at and message.startswith(absent):
                if at.get("key") == SYNCED:
                    return f"; GKE has not written it: berth secret list {owner}"
                return f"; set it with: berth secret set {owner} {variable['name']}"
    return ""


def has_a_node(pod: Object) -> bool:
    """Return whether a pod occupies a node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}


def finds_no_node(pod: Object) -> bool:
    """Return whether the scheduler found no node for a pod."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(entry["type"] == "PodScheduled" and entry.get("reason") == "Unschedulable" for entry in conditions)


def said_by_autoscaler(pod: Object, scaling: Iterable[Object]) -> str:
    """Return the autoscaler's last word on a pod: a node is coming, or why none is."""
    about = [event for event in scaling if (event.get("involvedObject") or {}).get("uid") == pod["metadata"].get("uid")]
    if not about:
        return ""
    last = max(about, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    if last.get("reason") == "TriggeredScaleUp":
        return "the autoscaler is adding a node for it"
    return f"the autoscaler: {last.get('message') or last.get('reason')}"


def is_ready(node: Object) -> bool:
    """Return whether a node's kubelet takes pods."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)


def is_simulated(node: Object) -> bool:
    """Return whether KWOK plays a node, so that its containers never run."""
    return "kwok.x-k8s.io/node" in (node["metadata"].get("annotations") or {})


def runs_here(pod: Object) -> bool:
    """Return whether a simulated head has a Ray on the lab's machine by now."""
    return LOCAL_RAY in (pod["metadata"].get("annotations") or {})


def _exit(pod: Object) -> str:
    """Return how the failed container ended, for a pod without a reason of its own."""
    for container in _containers(pod):
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            words = f"{ended.get('reason', '')}: {ended.get('message', '')}".strip(": ")
            return f"container {container['name']} ended with {ended['exitCode']}" + (f" ({words})" if words else "")
    return ""


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
