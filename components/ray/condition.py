"""Conditions of RayClusters, RayJobs and RayServices from their objects: pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_of_pod, replicas_of
from berth.components.cluster.pods import why_not_ready, why_still_there
from berth.components.core import fast_yaml
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
        return (
            self.state == "ready" and self.head_ready and self.workers_ready >= self.workers_desired
        )

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
        workers_desired=(
            0 if suspended else max(status.get("desiredWorkerReplicas") or 0, requested)
        ),
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
    up = (
        f"{ready['head']}/1 heads and {ready['worker']}/{condition.workers_desired} workers are"
        " ready"
    )
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
    templates = {
        group.get("groupName"): group["template"] for group in spec.get("workerGroupSpecs") or []
    }
    templates[HEAD_GROUP] = (spec.get("headGroupSpec") or {}).get("template") or {}
    for pod in pods:
        template = templates.get((pod["metadata"].get("labels") or {}).get("ray.io/group")) or {}
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


def _images(pod: Object) -> dict[str, str]:
    """Return the images of a pod's or template's containers by name, without their registries."""
    containers = (pod.get("spec") or {}).get("containers") or []
    return {
        str(one.get("name")): str(one.get("image") or "").rpartition("/")[2] for one in containers
    }


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
        and (
            reason := why_not_ready(
                pod, _role(pod), autoscaler, by_name.get(pod["metadata"].get("name", ""), "")
            )
        )
    )
    reasons.update(filter(None, map(why_still_there, found)))
    if reasons:
        return [
            f"{counted(count, 'pod')}: {reason}" if count > 1 else reason
            for reason, count in reasons.items()
        ]
    # A status that nothing else changes keeps the generation of before such an edit.
    if missing := missing or ("" if condition.seen else _swallowed(cluster, found)):
        return [missing]
    if warnings := list(
        dict.fromkeys(str(event.get("message") or event.get("reason")) for event in events)
    ):
        return warnings[-3:]
    if reason := (cluster.get("status") or {}).get("reason"):
        return [str(reason)]
    return [
        (
            str(condition)
            if condition.seen
            else "the KubeRay operator has not looked at it: is it running?"
        )
    ]


def gpus_of(cluster: Object) -> int:
    """Return the number of GPUs or shares that head and desired workers of a RayCluster request."""
    spec = cluster["spec"]
    head = (
        [spec["headGroupSpec"]["template"]]
        if (spec.get("headGroupSpec") or {}).get("template")
        else []
    )
    workers = sum(
        replicas_of(group) * gpus_of_pod(group["template"])
        for group in spec.get("workerGroupSpecs") or []
    )
    return workers + sum(map(gpus_of_pod, head))


def _role(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("ray.io/node-type", ""))


# Final states of a failed RayJob (kuberay v1.6.2, ray-operator/apis/ray/v1/rayjob_types.go).
_ENDED_BADLY = ("Failed", "ValidationFailed")

_WORDS: Mapping[str, str] = fast_yaml.beside(__file__)


@dataclass(frozen=True)
class JobCondition:
    """Condition of a RayJob."""

    state: str
    """Ray's state of the job, `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED` or `STOPPED`; before that
    KubeRay's, such as `Initializing`; "" before the operator has seen the RayJob."""
    running: bool
    """Ray has started the job, and the job has not failed."""
    succeeded: bool
    failed: bool
    """The job has failed for good."""
    reason: str
    ray_cluster: str
    """RayCluster that runs the job; "" if unknown yet."""

    def __str__(self) -> str:
        return _WORDS.get(self.state, self.state.lower())


def job_condition(job: Object) -> JobCondition:
    """Return the condition that a RayJob's status describes."""
    status = job.get("status") or {}
    deployment, state = (
        str(status.get("jobDeploymentStatus") or ""),
        str(status.get("jobStatus") or ""),
    )
    succeeded = deployment == "Complete" and state == "SUCCEEDED"
    failed = deployment in _ENDED_BADLY or (deployment == "Complete" and not succeeded)
    if failed and state not in ("FAILED", "STOPPED"):
        state = "FAILED"
    reason = ": ".join(str(part) for part in (status.get("reason"), status.get("message")) if part)
    return JobCondition(
        state=state if deployment in ("Running", "Complete") or failed else deployment,
        running=succeeded or (deployment == "Running" and state in ("RUNNING", "SUCCEEDED")),
        succeeded=succeeded,
        failed=failed,
        reason=reason,
        ray_cluster=str(status.get("rayClusterName") or ""),
    )


@dataclass(frozen=True)
class ServiceCondition:
    """Condition of a RayService."""

    ready: bool
    """The newest edit serves: all applications run, pods answer, and no upgrade is in progress."""
    seen: bool
    """The operator has seen the newest edit."""
    serving: int
    """Number of pods that answer requests."""
    running: int
    applications: int
    upgrading: bool
    """A second cluster is starting."""
    ray_clusters: tuple[str, ...]
    """The serving RayCluster, and the one that starts."""
    reasons: tuple[str, ...]
    """Problems of applications, by Ray, or of the RayService, by KubeRay."""

    @property
    def state(self) -> str:
        """State in a word: `ready`, `upgrading`, `serving` (some applications), `starting`."""
        if self.ready:
            return "ready"
        if not self.serving:
            return "starting"
        return "upgrading" if self.upgrading or not self.seen else "serving"

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the KubeRay operator"
        text = f"{self.running}/{self.applications} applications run, {self.serving} pods serve"
        return f"{text}, a second cluster is on its way" if self.upgrading else text


def service_condition(service: Object) -> ServiceCondition:
    """Return the condition that a RayService's status describes."""
    status = service.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
    generation = service["metadata"].get("generation", 0)
    active, pending = (status.get(f"{kind}ServiceStatus") or {} for kind in ("active", "pending"))
    # During an upgrade KubeRay polls only the new cluster.
    polled = pending if pending.get("rayClusterName") else active
    found = polled.get("applicationStatuses") or {}
    configured = _applications(service)
    running = sum((found.get(name) or {}).get("status") == "RUNNING" for name in configured)
    seen = (status.get("observedGeneration") or 0) >= generation
    upgrading = conditions.get("UpgradeInProgress", {}).get("status") == "True"
    serves = conditions.get("Ready", {}).get("status") == "True"
    reasons = [text for name in configured for text in _problems(name, found.get(name) or {})]
    if conditions.get("Ready", {}).get("reason") in ("ValidationFailed", "InitializingTimeout"):
        reasons.insert(0, str(conditions["Ready"].get("message")))
    return ServiceCondition(
        ready=seen and serves and not upgrading and running == len(configured),
        seen=seen,
        serving=int(status.get("numServeEndpoints") or 0),
        running=running,
        applications=len(configured),
        upgrading=upgrading,
        ray_clusters=tuple(
            str(status["rayClusterName"])
            for status in (active, pending)
            if status.get("rayClusterName")
        ),
        reasons=tuple(reasons),
    )


def _applications(service: Object) -> list[str]:
    config = yaml.safe_load(service["spec"].get("serveConfigV2") or "") or {}
    return [
        str(application.get("name", "default")) for application in config.get("applications") or []
    ]


def _problems(application: str, status: Object) -> Iterable[str]:
    if status.get("status") in (None, "", "RUNNING"):
        return
    yield f"application {application}: {status['status']}" + (
        f": {_line(status['message'])}" if status.get("message") else ""
    )
    for name, deployment in (status.get("serveDeploymentStatuses") or {}).items():
        if deployment.get("status") != "HEALTHY" and deployment.get("message"):
            yield (
                f"deployment {name} of it: {deployment.get('status')}:"
                f" {_line(deployment['message'])}"
            )


def _line(text: str) -> str:
    """Return the last line of a text, which is the error of a Python traceback."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""
