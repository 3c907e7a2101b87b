"""State of pods and nodes, in the scheduler's and the kubelet's own words, and taints. Pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from berth.components.cluster.api import Object
from berth.components.core.owner import OWNER_LABELS

SYNCED = "synced"
"""Key of a value in a Secret that GKE writes from Secret Manager."""

LOCAL_RAY = "lab.berth/ray"
"""Annotation of a simulated head whose Ray runs on the lab's machine: the dashboard's address."""

_LONG_ENDING = timedelta(minutes=1)
"""Time after a pod's grace period, which its deletion timestamp includes, in which it ends."""

_STARTING = (None, "ContainerCreating", "PodInitializing")


def why_not_ready(
    pod: Object, kind: str = "", scaling: Iterable[Object] = (), devices: str = ""
) -> str | None:
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
        reasons = [message, devices, said_by_autoscaler(pod, scaling), _elsewhere(message)]
        return f"{name} cannot be scheduled: {'; '.join(filter(None, reasons))}"
    if status.get("phase") == "Failed":
        return (
            f"{name} failed:"
            f" {status.get('message') or status.get('reason') or _exit(pod) or 'no reason given'}"
        )
    for container in _containers(pod):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in _STARTING:
            words = (
                f"{name}, container {container['name']}: {waiting['reason']}:"
                f" {waiting.get('message', '')}"
            )
            return words.rstrip(": ") + _way_out(pod, container)
    return f"{name} is not ready yet (phase {status.get('phase', 'unknown')})"


def why_still_there(pod: Object, now: datetime | None = None) -> str:
    """Return why a pod that is being deleted does not end; "" for one that has time left.

    A node without the driver of claimed devices ends no pod that has them (kubernetes 129402).
    """
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    ending, held = metadata.get("deletionTimestamp"), metadata.get("finalizers")
    if not ending or datetime.fromisoformat(ending) + _LONG_ENDING > (now or datetime.now(UTC)):
        return ""
    if not held and not spec.get("resourceClaims"):
        return ""
    node, name = (
        spec.get("nodeName", ""),
        f"{metadata.get('name')} --namespace={metadata.get('namespace')}",
    )
    words = f"pod {metadata.get('name')} cannot end"
    if held:
        return f"{words}: finalizer {', '.join(held)} holds it, whose controller may be gone"
    return (
        f"{words}: on node {node} the driver of its claimed devices may not run; once it runs there"
        f" the pod ends (kubectl get pods -A --field-selector=spec.nodeName={node}); without that"
        f" node: kubectl delete pod {name} --force"
    )


def _way_out(pod: Object, container: Object) -> str:
    """Return what helps a container that waits, as the end of a sentence; "" without advice."""
    ended = (container.get("lastState") or {}).get("terminated") or {}
    waiting, metadata = container["state"]["waiting"], pod["metadata"]
    if ended.get("reason") == "OOMKilled":
        setting = "autoscaler.memory" if container["name"] == "autoscaler" else "memory"
        return f"; it used more memory than its limit, and was killed: raise `{setting}`"
    if waiting.get("reason") == "CreateContainerError" and (pod.get("spec") or {}).get(
        "resourceClaims"
    ):
        return (
            "; after a restart its node may have lost the devices that the pod claimed (kubernetes"
            f" 141433): kubectl delete pod {metadata.get('name')}"
            f" --namespace={metadata.get('namespace')}"
        )
    return _command_for_secret(pod, str(waiting.get("message") or ""))


def _command_for_secret(pod: Object, message: str) -> str:
    """Return the command that helps with a secret value without which a container does not start.

    The kubelet's messages: v1.36.3, pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables.
    """
    labels = pod["metadata"].get("labels") or {}
    owner = next((labels[label] for label in OWNER_LABELS.values() if label in labels), "")
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            at = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
            absent = (
                f'secret "{at.get("name")}" not found',
                f"couldn't find key {at.get('key')} in Secret ",
            )
            if owner and at and message.startswith(absent):
                if at.get("key") == SYNCED:
                    return f"; GKE has not written it: berth secret list {owner}"
                return f"; set it with: berth secret set {owner} {variable['name']}"
    return ""


def _elsewhere(message: str) -> str:
    """Return what the scheduler means by a volume that no node can have."""
    if "volume node affinity conflict" not in message:
        return ""
    return (
        "its home is a disk of one zone, where the pool has no node with room: give the pool nodes"
        " in that zone, which kubectl get persistentvolumes shows"
    )


def has_a_node(pod: Object) -> bool:
    """Return whether a pod occupies a node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in {
        "Succeeded",
        "Failed",
    }


def finds_no_node(pod: Object) -> bool:
    """Return whether the scheduler found no node for a pod."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(
        entry["type"] == "PodScheduled" and entry.get("reason") == "Unschedulable"
        for entry in conditions
    )


def said_by_autoscaler(pod: Object, scaling: Iterable[Object]) -> str:
    """Return the autoscaler's last word on a pod: a node is coming, or why none is."""
    about = [
        event
        for event in scaling
        if (event.get("involvedObject") or {}).get("uid") == pod["metadata"].get("uid")
    ]
    if not about:
        return ""
    last = max(
        about, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or "")
    )
    if last.get("reason") == "TriggeredScaleUp":
        return "the autoscaler is adding a node for it"
    return f"the autoscaler: {last.get('message') or last.get('reason')}"


def untolerated(
    taints: Iterable[Mapping[str, str]], tolerations: Iterable[Object]
) -> Mapping[str, str] | None:
    """Return the first taint that keeps a pod with these tolerations off a node, if any."""
    known = list(tolerations)
    for taint in taints:
        if taint.get("effect") != "PreferNoSchedule" and not any(
            _tolerates(entry, taint) for entry in known
        ):
            return taint
    return None


def _tolerates(toleration: Object, taint: Mapping[str, str]) -> bool:
    return (
        toleration.get("effect") in (None, "", taint.get("effect"))
        and toleration.get("key") in (None, "", taint["key"])
        and (
            toleration.get("operator") == "Exists"
            or toleration.get("value", "") == (taint.get("value") or "")
        )
    )


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
            return f"container {container['name']} ended with {ended['exitCode']}" + (
                f" ({words})" if words else ""
            )
    return ""


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
