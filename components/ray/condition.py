"""What can be told of a RayCluster from the API server's objects: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.gpus import gpus_of_pod
from berth.components.cluster.pods import why_not_ready

Object = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """A RayCluster's condition.

    Attributes:
        state: KubeRay's state: `ready`, `suspended`, `failed`; `waking` from `suspended` to `ready`; `unknown` before the
            operator has seen it.
        head_ready: the head pod is ready.
        workers_ready: worker pods that are ready.
        workers_desired: worker pods that there should be.
        seen: the operator has seen the newest edit.
    """

    state: str
    head_ready: bool
    workers_ready: int
    workers_desired: int
    seen: bool

    @property
    def ready(self) -> bool:
        """Every pod is there and ready, or the cluster is suspended, when there are to be none."""
        if not self.seen:
            return False
        if self.state == "suspended":
            return True
        return self.state == "ready" and self.head_ready and self.workers_ready >= self.workers_desired

    def __str__(self) -> str:
        if not self.seen:
            return "the operator has not seen it yet"
        head = "head ready" if self.head_ready else "head not ready"
        return f"{head}, {self.workers_ready}/{self.workers_desired} workers ready"


def condition_of(cluster: Object) -> Condition:
    """The condition that a RayCluster's status tells."""
    status = cluster.get("status") or {}
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions") or []}
    generation = cluster["metadata"].get("generation", 0)
    wanted = sum(group.get("replicas") or 0 for group in cluster["spec"].get("workerGroupSpecs") or [])
    state = status.get("state") or "unknown"
    suspended = state == "suspended" and bool(cluster["spec"].get("suspend"))
    return Condition(
        # KubeRay leaves the state of a cluster that wakes as it was until every pod is ready (seen of v1.6.2).
        state="waking" if state == "suspended" and not suspended else state,
        head_ready=conditions.get("HeadPodReady") == "True",
        workers_ready=status.get("readyWorkerReplicas") or 0,
        workers_desired=0 if suspended else max(status.get("desiredWorkerReplicas") or 0, wanted),
        seen=(status.get("observedGeneration") or 0) >= generation,
    )


def pods_missing(cluster: Object, pods: Iterable[Object]) -> str:
    """What a RayCluster lacks whose status says that it is ready, by the pods themselves; "" where it lacks nothing.

    After an edit of its pods KubeRay 1.6 deletes them all, and then writes a status that has seen the edit and still counts them
    (ray-operator/controllers/ray/raycluster_controller.go: reconcilePods, then calculateStatus from a cache). They are deleted before that
    status is written, so that pods which are there and not going are those of the edit.

    Args:
        cluster: the RayCluster.
        pods: its pods, listed after it.
    """
    condition = condition_of(cluster)
    if condition.state == "suspended":
        return ""
    ready: Counter[str] = Counter()
    going = 0
    for pod in pods:
        kind = (pod["metadata"].get("labels") or {}).get("ray.io/node-type", "")
        if "deletionTimestamp" in pod["metadata"]:
            going += 1
        elif why_not_ready(pod) is None:
            ready[kind] += 1
    if ready["head"] >= 1 and ready["worker"] >= condition.workers_desired:
        return ""
    counted = f"{ready['head']}/1 heads and {ready['worker']}/{condition.workers_desired} workers are ready"
    return f"its pods are made anew: {f'{going} are going, ' if going else ''}{counted}"


def reasons_not_ready(
    cluster: Object,
    pods: Iterable[Object],
    events: Iterable[Object],
    scaling: Iterable[Object] = (),
    devices: Mapping[str, str] | None = None,
) -> list[str]:
    """Why a RayCluster is not ready, in one line a distinct reason.

    Args:
        cluster: the RayCluster.
        pods: its pods.
        events: warnings about the RayCluster itself.
        scaling: what the cluster's autoscaler said of pods, as events.
        devices: why pods have not got the devices that they claim, by name of the pod.
    """
    condition, found = condition_of(cluster), list(pods)
    missing = pods_missing(cluster, found) if condition.ready else ""
    if condition.ready and not missing:
        return []
    said = list(scaling)
    staying = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    counted = Counter(reason for pod in staying if (reason := _why_pod_not_ready(pod, said, devices or {})))
    reasons = [f"{count} pods: {reason}" if count > 1 else reason for reason, count in counted.items()]
    if not reasons and missing:
        reasons = [missing]
    if not reasons:
        reasons = list(dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events))[-3:]
    if not reasons and (reason := (cluster.get("status") or {}).get("reason")):
        reasons = [str(reason)]
    if not reasons and not condition.seen:
        reasons = ["the KubeRay operator has not looked at it: is it running?"]
    return reasons or [str(condition)]


def _why_pod_not_ready(pod: Object, scaling: Iterable[Object], devices: Mapping[str, str]) -> str | None:
    kind = (pod["metadata"].get("labels") or {}).get("ray.io/node-type", "")
    return why_not_ready(pod, kind, scaling, devices.get(pod["metadata"].get("name", ""), ""))


def gpus_of(cluster: Object) -> int:
    """GPUs, or shares of them, that a RayCluster's workers ask for, with all desired workers there."""
    groups = cluster["spec"].get("workerGroupSpecs") or []
    return sum((group.get("replicas") or 0) * gpus_of_pod(group["template"]) for group in groups)
