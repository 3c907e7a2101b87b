"""State of pods, in the scheduler's and the kubelet's own words. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import annotations_of, condition_in, is_true, labels_of
from berth.components.core.owner import OWNER_LABELS
from berth.components.hardware.names import POOL_LABEL

SYNCED = "synced"
"""Key of a value in a Secret that GKE writes from Secret Manager."""

LOCAL_RAY = "lab.berth/ray"
"""Annotation of a simulated head whose Ray runs on the lab's machine: the dashboard's address."""

_LONG_ENDING = timedelta(minutes=1)
"""Time after a pod's grace period, which its deletion timestamp includes, in which it ends."""

_STARTING = (None, "ContainerCreating", "PodInitializing")

_MEMORY: Mapping[str, str] = {
    "autoscaler": "raise `autoscaler.memory`",
    "gke-gcsfuse-sidecar": "raise `gcsFuse.memory`",
    "ray-head": "raise `head.memory`",
    "ray-worker": "raise `worker.memory`",
    # KubeRay's constant (v1.6.2, ray-operator/controllers/ray/common/pod.go): Python starts in it.
    "wait-gcs-ready": (
        "KubeRay gives it 256Mi, which this image needs more than; write operators.kuberay.values:"
        ' {env: [{name: ENABLE_INIT_CONTAINER_INJECTION, value: "false"}]}, and workers restart'
        " until the head is there"
    ),
    "ray-job-submitter": "it has 1Gi; write `submissionMode: HTTPMode`, which needs no submitter",
}
"""Ways to more memory by container; other containers are a pod template's."""

_MEMORY_OF_OTHERS = "raise its `resources.limits.memory` in `podTemplate`"


def why_not_ready(
    pod: Object, kind: str = "", scaling: Iterable[Object] = (), devices: str = ""
) -> str | None:
    """Return why a pod is not ready; None if it is.

    Args:
        pod: the pod.
        kind: word for people, such as `worker`: "worker pod cannot be scheduled: …".
        scaling: events of the cluster's autoscaler about pods.
        devices: why the pod lacks devices, where that is known.
    """
    if is_true(pod, "Ready"):
        return None
    name = f"{kind} pod".lstrip()
    status = pod.get("status") or {}
    if _lacks_a_node(pod, devices):
        return f"{name} cannot be scheduled: {_why_unscheduled(pod, scaling, devices)}"
    if status.get("phase") == "Failed":
        words = status.get("message") or status.get("reason") or _exit(pod)
        return f"{name} failed: {words or 'no reason given'}"
    for container in _containers(pod):
        words = _why_waiting(pod, container) or _why_not_ready_yet(pod, container)
        if words:
            return f"{name}, container {container['name']}: {words}"
    return f"{name} is not ready yet (phase {status.get('phase', 'unknown')})"


def _lacks_a_node(pod: Object, devices: str) -> bool:
    """Return whether the scheduler has refused a pod, or does not look at it.

    The scheduler does not look at a pod whose claims do not exist yet, and sets no condition.
    """
    refused = condition_in(pod, "PodScheduled").get("status") == "False"
    return refused or (bool(devices) and not pod["spec"].get("nodeName"))


def _why_unscheduled(pod: Object, scaling: Iterable[Object], devices: str) -> str:
    scheduled = condition_in(pod, "PodScheduled")
    message = str(scheduled.get("message") or scheduled.get("reason") or "")
    reasons = [message, devices, said_by_autoscaler(pod, scaling), _elsewhere(message)]
    return "; ".join(filter(None, reasons))


def _why_waiting(pod: Object, container: Object) -> str:
    """Return why a container waits; "" for one that runs, or starts as it should."""
    waiting = (container.get("state") or {}).get("waiting")
    if not waiting or waiting.get("reason") in _STARTING:
        return ""
    words = f"{waiting['reason']}: {waiting.get('message', '')}"
    return words.rstrip(": ") + _way_out(pod, container)


def _why_not_ready_yet(pod: Object, container: Object) -> str:
    """Return why a container that does not wait is not ready: its last end, or a probe; else ""."""
    state = container.get("state") or {}
    if container.get("ready") or not {"running", "terminated"} & state.keys():
        return ""
    if ended := _last_end(container):
        times = f", restarts: {container['restartCount']}" if container.get("restartCount") else ""
        return f"{_how_it_ended(ended)}{times}{_way_to_memory(container)}"
    if "running" not in state:
        return ""
    spec = _container_named(pod, container["name"])
    if container.get("started") is False and spec.get("startupProbe"):
        return "runs, and its startup probe has not passed"
    if container.get("started") is not False and spec.get("readinessProbe"):
        return "runs, and its readiness probe does not pass"
    return ""


def _how_it_ended(ended: Object) -> str:
    code = ended.get("exitCode")
    return f"ended with {ended.get('reason') or 'an error'}" + (
        f" (exit code {code})" if code else ""
    )


def _last_end(container: Object) -> Object:
    """Return how a container ended badly, now or before it was started again; empty if never."""
    for field in ("state", "lastState"):
        ended: Object = (container.get(field) or {}).get("terminated") or {}
        if ended.get("reason") == "OOMKilled" or ended.get("exitCode"):
            return ended
    return {}


def _container_named(pod: Object, name: str) -> Object:
    """Return a container of a pod's spec; an empty one if there is none of this name."""
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            if container.get("name") == name:
                found: Object = container
                return found
    return {}


def why_still_there(pod: Object, now: datetime | None = None) -> str:
    """Return why a pod that is being deleted does not end; "" for one that has time left.

    A node without the driver of claimed devices ends no pod that has them (kubernetes 129402).
    """
    metadata = pod["metadata"]
    ending = metadata.get("deletionTimestamp")
    if not ending or datetime.fromisoformat(ending) + _LONG_ENDING > (now or datetime.now(UTC)):
        return ""
    words = f"pod {metadata.get('name')} cannot end"
    if finalizers := metadata.get("finalizers"):
        return f"{words}: finalizer {', '.join(finalizers)} holds it, whose controller may be gone"
    spec = pod.get("spec") or {}
    if not spec.get("resourceClaims"):
        return ""
    node = spec.get("nodeName", "")
    name = f"{metadata.get('name')} --namespace={metadata.get('namespace')}"
    return (
        f"{words}: on node {node} the driver of its claimed devices may not run; once it runs there"
        f" the pod ends (kubectl get pods -A --field-selector=spec.nodeName={node}); without that"
        f" node: kubectl delete pod {name} --force"
    )


def _way_out(pod: Object, container: Object) -> str:
    """Return what helps a container that waits, as the end of a sentence; "" without advice."""
    if way := _way_to_memory(container):
        return way
    waiting = container["state"]["waiting"]
    has_claims = bool((pod.get("spec") or {}).get("resourceClaims"))
    if waiting.get("reason") == "CreateContainerError" and has_claims:
        metadata = pod["metadata"]
        return (
            "; after a restart its node may have lost the devices that the pod claimed (kubernetes"
            f" 141433): kubectl delete pod {metadata.get('name')}"
            f" --namespace={metadata.get('namespace')}"
        )
    return _command_for_secret(pod, str(waiting.get("message") or ""))


def _way_to_memory(container: Object) -> str:
    """Return what helps a container that was killed for its memory; "" for any other."""
    if _last_end(container).get("reason") != "OOMKilled":
        return ""
    way = _MEMORY.get(container["name"], _MEMORY_OF_OTHERS)
    return f"; it used more memory than its limit, and was killed: {way}"


def _command_for_secret(pod: Object, message: str) -> str:
    """Return the command that helps with a secret value without which a container does not start.

    The kubelet's messages: v1.36.3, pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables.
    """
    labels = labels_of(pod)
    owner = next((labels[label] for label in OWNER_LABELS.values() if label in labels), "")
    if not owner:
        return ""
    for variable in _secret_variables(pod):
        secret = variable["valueFrom"]["secretKeyRef"]
        no_secret = f'secret "{secret.get("name")}" not found'
        no_key = f"couldn't find key {secret.get('key')} in Secret "
        if message.startswith((no_secret, no_key)):
            if secret.get("key") == SYNCED:
                return f"; GKE has not written it: berth secret list {owner}"
            return f"; set it with: berth secret set {owner} {variable['name']}"
    return ""


def _secret_variables(pod: Object) -> Iterator[Object]:
    """Yield the environment variables of a pod whose values come from a Secret."""
    for container in (pod.get("spec") or {}).get("containers") or []:
        for variable in container.get("env") or []:
            if (variable.get("valueFrom") or {}).get("secretKeyRef"):
                yield variable


def _elsewhere(message: str) -> str:
    """Return what the scheduler means by a volume that no node can have."""
    if "volume node affinity conflict" not in message:
        return ""
    return (
        "its home is a disk of one zone, where the pool has no node with room: give the pool nodes"
        " in that zone, which kubectl get persistentvolumes shows"
    )


def selected_pool(pod: Object) -> str:
    """Return the node pool that a pod selects; "" for none."""
    return str((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL, ""))


def has_a_node(pod: Object) -> bool:
    """Return whether a pod occupies a node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in {
        "Succeeded",
        "Failed",
    }


def finds_no_node(pod: Object) -> bool:
    """Return whether the scheduler found no node for a pod."""
    return condition_in(pod, "PodScheduled").get("reason") == "Unschedulable"


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


def runs_here(pod: Object) -> bool:
    """Return whether a simulated head has a Ray on the lab's machine by now."""
    return LOCAL_RAY in annotations_of(pod)


def _exit(pod: Object) -> str:
    """Return how the failed container ended, for a pod without a reason of its own."""
    for container in _containers(pod):
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            words = f"{ended.get('reason', '')}: {ended.get('message', '')}".strip(": ")
            why = f" ({words})" if words else ""
            return f"container {container['name']} ended with {ended['exitCode']}{why}"
    return ""


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
