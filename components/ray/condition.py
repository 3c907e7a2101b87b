"""Condition of a RayCluster from the API server's objects: pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_of_pod, replicas_of
from berth.components.cluster.pods import why_not_ready, why_still_there
from berth.components.core.words import are, counted
from berth.components.ray.layers import HEAD_GROUP


@dataclass(frozen=True)
class Condition:
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
        return self.state == "ready" and self.head_ready and self.workers_ready >= self.workers_desired

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the KubeRay operator"
        head = "head ready" if self.head_ready else "head not ready"
        return f"{head}, {self.workers_ready}/{self.workers_desired} workers ready"


def condition_of(cluster: Object) -> Condition:
    """Return the condition that a RayCluster's status describes."""
    status = cluster.get("status") or {}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions") or []}
    requested = sum(map(replicas_of, cluster["spec"].get("workerGroupSpecs") or []))
    state = status.get("state") or "unknown"
    suspended = state == "suspended" and bool(cluster["spec"].get("suspend"))
    return Condition(
        # KubeRay keeps the state of a waking cluster until every pod is ready (seen with v1.6.2).
        state="waking" if state == "suspended" and not suspended else state,
        head_ready=conditions.get("HeadPodReady") == "True",
        workers_ready=status.get("readyWorkerReplicas") or 0,
        workers_desired=0 if suspended else max(status.get("desiredWorkerReplicas") or 0, requested),
        seen=(status.get("observedGeneration") or 0) >= cluster["metadata"].get("generation", 0),
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
    found = list(pods)
    staying = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    ready = Counter(_role(pod) for pod in staying if why_not_ready(pod) is None)
    if ready["head"] >= 1 and ready["worker"] >= condition.workers_desired:
        return _swallowed(cluster, staying)
    ending = len(found) - len(staying)
    terminating = f"{counted(ending, 'pod')} {are(ending)} still terminating, " if ending else ""
    up = f"{ready['head']}/1 heads and {ready['worker']}/{condition.workers_desired} workers are ready"
    return f"its pods are being recreated: {terminating}{up}"


def _swallowed(cluster: Object, pods: Iterable[Object]) -> str:
    """Return which pod has another image than its RayCluster says; "" if none has.

    KubeRay 1.6 notes the spec as it is on a head that another version of KubeRay has made, and
    recreates no pod (raycluster_controller.go: shouldRecreatePodsForUpgrade): an edit before that
    has no effect. Registries are not compared: admission may change them.
    """
    spec = cluster["spec"]
    if (spec.get("upgradeStrategy") or {}).get("type") != "Recreate":
        return ""
    templates = {group.get("groupName"): group["template"] for group in spec.get("workerGroupSpecs") or []}
    templates[HEAD_GROUP] = (spec.get("headGroupSpec") or {}).get("template") or {}
    for pod in pods:
        template = templates.get((pod["metadata"].get("labels") or {}).get("ray.io/group")) or {}
        running = _images(pod)
        for name, image in _images(template).items():
            runs = running.get(name, image)
            if runs != image and not runs.startswith(f"{image}@"):
                return (
                    f"pod {pod['metadata'].get('name')} has image {runs}, not {image}: KubeRay has not recreated the"
                    " pods after an edit; `berth suspend` and then `berth wake` do so"
                )
    return ""


def _images(pod: Object) -> dict[str, str]:
    """Return the images of a pod's or template's containers by name, without their registries."""
    containers = (pod.get("spec") or {}).get("containers") or []
    return {str(one.get("name")): str(one.get("image") or "").rpartition("/")[2] for one in containers}


def reasons_not_ready(
    cluster: Object,
    pods: Iterable[Object],
    events: Iterable[Object],
    scaling: Iterable[Object] = (),
    devices: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the distinct reasons why a RayCluster is not ready, one line each.

    `devices` says why pods lack the devices that they claim, by name of the pod.
    """
    condition, found, autoscaler = condition_of(cluster), list(pods), list(scaling)
    missing = pods_missing(cluster, found) if condition.ready else ""
    if condition.ready and not missing:
        return []
    by_name = devices or {}
    reasons = Counter(
        reason
        for pod in found
        if "deletionTimestamp" not in pod["metadata"]
        and (reason := why_not_ready(pod, _role(pod), autoscaler, by_name.get(pod["metadata"].get("name", ""), "")))
    )
    reasons.update(filter(None, map(why_still_there, found)))
    if reasons:
        return [f"{counted(count, 'pod')}: {reason}" if count > 1 else reason for reason, count in reasons.items()]
    # A status that nothing else changes keeps the generation of before such an edit.
    if missing := missing or ("" if condition.seen else _swallowed(cluster, found)):
        return [missing]
    if warnings := list(dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events)):
        return warnings[-3:]
    if reason := (cluster.get("status") or {}).get("reason"):
        return [str(reason)]
    return [str(condition) if condition.seen else "the KubeRay operator has not looked at it: is it running?"]


def gpus_of(cluster: Object) -> int:
    """Return the number of GPUs or shares that head and desired workers of a RayCluster request."""
    spec = cluster["spec"]
    head = [spec["headGroupSpec"]["template"]] if (spec.get("headGroupSpec") or {}).get("template") else []
    workers = sum(replicas_of(group) * gpus_of_pod(group["template"]) for group in spec.get("workerGroupSpecs") or [])
    return workers + sum(map(gpus_of_pod, head))


def _role(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("ray.io/node-type", ""))
