"""Condition of a RayJob or a RayService from the API server's objects: pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from berth.components.cluster.api import Object

# Final states of a failed RayJob (kuberay v1.6.2, ray-operator/apis/ray/v1/rayjob_types.go).
_ENDED_BADLY = ("Failed", "ValidationFailed")

_WORDS = {
    "": "waiting for the KubeRay operator",
    "Initializing": "waiting for its RayCluster",
    "Waiting": "waiting to be submitted",
    "Retrying": "trying again on a new RayCluster",
    "Suspending": "being suspended",
    "Suspended": "suspended",
}


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
    deployment, state = str(status.get("jobDeploymentStatus") or ""), str(status.get("jobStatus") or "")
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
            str(status["rayClusterName"]) for status in (active, pending) if status.get("rayClusterName")
        ),
        reasons=tuple(reasons),
    )


def _applications(service: Object) -> list[str]:
    config = yaml.safe_load(service["spec"].get("serveConfigV2") or "") or {}
    return [str(application.get("name", "default")) for application in config.get("applications") or []]


def _problems(application: str, status: Object) -> Iterable[str]:
    if status.get("status") in (None, "", "RUNNING"):
        return
    yield f"application {application}: {status['status']}" + (
        f": {_line(status['message'])}" if status.get("message") else ""
    )
    for name, deployment in (status.get("serveDeploymentStatuses") or {}).items():
        if deployment.get("status") != "HEALTHY" and deployment.get("message"):
            yield f"deployment {name} of it: {deployment.get('status')}: {_line(deployment['message'])}"


def _line(text: str) -> str:
    """Return the last line of a text, which is the error of a Python traceback."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""
