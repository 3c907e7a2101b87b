"""Condition of a RayCluster: its state, and why it is not ready. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import is_seen, is_true, labels_of
from berth.components.cluster.pods import why_not_ready, why_still_there
from berth.components.cluster.ray_manifest import (
    head_group,
    is_recreated,
    is_suspended,
    replicas_of,
    worker_groups,
)
from berth.components.core.words import counted, is_or_are
from berth.components.ray.layers import HEAD_GROUP

_WARNINGS_SHOWN = 3


@dataclass(frozen=True)
class ClusterCondition:
    """Condition of a RayCluster."""

    state: str
    """KubeRay's state: `ready`, `suspended`, `failed`; `waking` between `suspended` and `ready`;
    `unknown` before the operator has seen the cluster."""
    head_ready: bool
    workers_ready: int
    workers_desired: int
    seen: bool
    """The operator has seen the newest edit."""

    @property
    def ready(self) -> bool:
        """Whether every pod is ready, or the cluster is suspended as it should be."""
        if not self.seen or self.state == "suspended":
            return self.seen
        return (
            self.state == "ready" and self.head_ready and self.workers_ready >= self.workers_desired
        )

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the KubeRay operator"
        head = "head ready" if self.head_ready else "head not ready"
        return f"{head}, {self.workers_ready}/{self.workers_desired} workers ready"


def condition_of(cluster: Object) -> ClusterCondition:
    """Return the condition that a RayCluster's status describes."""
    status = cluster.get("status") or {}
    state = status.get("state") or "unknown"
    suspended = state == "suspended" and is_suspended(cluster)
    if state == "suspended" and not suspended:
        # KubeRay keeps the state of a waking cluster until every pod is ready (seen with v1.6.2).
        state = "waking"
    requested = sum(map(replicas_of, worker_groups(cluster)))
    desired = max(status.get("desiredWorkerReplicas") or 0, requested)
    return ClusterCondition(
        state=state,
        head_ready=is_true(cluster, "HeadPodReady"),
        workers_ready=status.get("readyWorkerReplicas") or 0,
        workers_desired=0 if suspended else desired,
        seen=is_seen(cluster),
    )


def pods_missing(cluster: Object, pods: Iterable[Object]) -> str:
    """Return the pods that a RayCluster, read before them, lacks despite its status; "" for none.

    After an edit KubeRay 1.6 deletes all pods, and then writes a status that has seen the edit and
    still counts them (ray-operator/controllers/ray/raycluster_controller.go: reconcilePods, then
    calculateStatus from a cache). The deletion comes before the status, so pods without a deletion
    timestamp are those of the edit.
    """
    condition = condition_of(cluster)
    if condition.state == "suspended":
        return ""
    all_pods = list(pods)
    staying = [pod for pod in all_pods if not _is_terminating(pod)]
    ready = Counter(_role(pod) for pod in staying if why_not_ready(pod) is None)
    if ready["head"] >= 1 and ready["worker"] >= condition.workers_desired:
        return _pod_with_old_image(cluster, staying)
    ending = len(all_pods) - len(staying)
    terminating = (
        f"{counted(ending, 'pod')} {is_or_are(ending)} still terminating, " if ending else ""
    )
    up = (
        f"{ready['head']}/1 heads and {ready['worker']}/{condition.workers_desired} workers are"
        " ready"
    )
    return f"its pods are being recreated: {terminating}{up}"


def _pod_with_old_image(cluster: Object, pods: Iterable[Object]) -> str:
    """Return which pod has another image than its RayCluster says; "" if none has.

    KubeRay 1.6 notes the spec as it is on a head that another version of KubeRay has made, and
    recreates no pod (raycluster_controller.go: shouldRecreatePodsForUpgrade): an edit before that
    has no effect. Registries are not compared: admission may change them.
    """
    if not is_recreated(cluster):
        return ""
    templates = _templates_of(cluster)
    for pod in pods:
        template = templates.get(labels_of(pod).get("ray.io/group")) or {}
        running = _images(pod)
        for name, image in _images(template).items():
            runs = running.get(name, image)
            if runs != image and not runs.startswith(f"{image}@"):
                return (
                    f"pod {pod['metadata'].get('name')} has image {runs}, not {image}: KubeRay has"
                    " not recreated the pods after an edit; `berth suspend` and then `berth wake`"
                    " do so"
                )
    return ""


def _templates_of(cluster: Object) -> dict[str | None, Object]:
    """Return the pod templates of a RayCluster by the name of their group."""
    templates: dict[str | None, Object] = {
        group.get("groupName"): group["template"] for group in worker_groups(cluster)
    }
    templates[HEAD_GROUP] = head_group(cluster).get("template") or {}
    return templates


def _images(pod: Object) -> dict[str, str]:
    """Return the images of a pod's or template's containers by name, without their registries."""
    images = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        image = str(container.get("image") or "")
        images[str(container.get("name"))] = image.rpartition("/")[2]
    return images


def reasons_not_ready(
    cluster: Object,
    pods: Iterable[Object],
    events: Iterable[Object],
    scaling: Iterable[Object] = (),
    devices: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the distinct reasons why a RayCluster is not ready, one line each.

    Args:
        cluster: the RayCluster.
        pods: its pods, which were read after it.
        events: warnings about it.
        scaling: events of the cluster's autoscaler about pods.
        devices: why pods lack the devices that they claim, by name of the pod.
    """
    condition = condition_of(cluster)
    all_pods = list(pods)
    missing = pods_missing(cluster, all_pods) if condition.ready else ""
    if condition.ready and not missing:
        return []
    if reasons := _reasons_of_pods(all_pods, list(scaling), devices or {}):
        return reasons
    if not missing and not condition.seen:
        # A status that nothing else changes keeps the generation of before such an edit.
        missing = _pod_with_old_image(cluster, all_pods)
    if missing:
        return [missing]
    if warnings := last_messages(events):
        return warnings
    if reason := (cluster.get("status") or {}).get("reason"):
        return [str(reason)]
    if not condition.seen:
        return ["the KubeRay operator has not looked at it: is it running?"]
    return [str(condition)]


def last_messages(events: Iterable[Object]) -> list[str]:
    """Return the last distinct messages of events."""
    messages = (str(event.get("message") or event.get("reason")) for event in events)
    return list(dict.fromkeys(messages))[-_WARNINGS_SHOWN:]


def _reasons_of_pods(
    pods: Sequence[Object], scaling: Sequence[Object], devices: Mapping[str, str]
) -> list[str]:
    """Return why pods do not start, or do not end, with the number of pods for each reason."""
    reasons: Counter[str] = Counter()
    for pod in pods:
        if _is_terminating(pod):
            continue
        without_devices = devices.get(pod["metadata"].get("name", ""), "")
        if reason := why_not_ready(pod, _role(pod), scaling, without_devices):
            reasons[reason] += 1
    for pod in pods:
        if reason := why_still_there(pod):
            reasons[reason] += 1
    return [
        f"{counted(count, 'pod')}: {reason}" if count > 1 else reason
        for reason, count in reasons.items()
    ]


def _is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _role(pod: Object) -> str:
    return labels_of(pod).get("ray.io/node-type", "")
