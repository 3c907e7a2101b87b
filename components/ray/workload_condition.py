"""What can be told of a RayJob or a RayService from the API server's objects: pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

Object = dict[str, Any]

# Of KubeRay's states of a RayJob those that it does not leave (kuberay v1.6.2, ray-operator/apis/ray/v1/rayjob_types.go).
_ENDED_BADLY = ("Failed", "ValidationFailed")

_WORDS = {
    "": "the operator has not seen it yet",
    "Initializing": "waiting for its RayCluster",
    "Waiting": "waiting to be submitted",
    "Retrying": "trying again on a new RayCluster",
    "Suspending": "being suspended",
    "Suspended": "suspended",
}


@dataclass(frozen=True)
class JobCondition:
    """A RayJob's condition.

    Attributes:
        state: Ray's state of the job, `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED` or `STOPPED`; KubeRay's before Ray has it, such as
            `Initializing`; "" before the operator has seen it.
        running: Ray has begun to run it, and it has not failed.
        succeeded: it has ended well.
        failed: it has ended otherwise, for good.
        told: why, by Ray or KubeRay.
        ray_cluster: the RayCluster that it runs on, "" where that is not known yet.
    """

    state: str
    running: bool
    succeeded: bool
    failed: bool
    told: str
    ray_cluster: str

    def __str__(self) -> str:
        return _WORDS.get(self.state, self.state.lower())


def job_condition(job: Object) -> JobCondition:
    """The condition that a RayJob's status tells."""
    status = job.get("status") or {}
    deployment, state = str(status.get("jobDeploymentStatus") or ""), str(status.get("jobStatus") or "")
    succeeded = deployment == "Complete" and state == "SUCCEEDED"
    failed = deployment in _ENDED_BADLY or (deployment == "Complete" and not succeeded)
    if failed and state not in ("FAILED", "STOPPED"):
        state = "FAILED"
    told = ": ".join(str(part) for part in (status.get("reason"), status.get("message")) if part)
    return JobCondition(
        state=state if deployment in ("Running", "Complete") or failed else deployment,
        running=succeeded or (deployment == "Running" and state in ("RUNNING", "SUCCEEDED")),
        succeeded=succeeded,
        failed=failed,
        told=told,
        ray_cluster=str(status.get("rayClusterName") or ""),
    )


@dataclass(frozen=True)
class ServiceCondition:
    """A RayService's condition.

    Attributes:
        ready: the newest edit serves: all of its applications run, pods answer, and no second cluster is on its way.
        seen: the operator has seen the newest edit.
        serving: pods that answer requests.
        running: applications that run.
        applications: applications that there should be.
        upgrading: a second cluster is on its way.
        ray_clusters: RayClusters that it has: the one that serves, and the one that is to.
        told: what is wrong with applications, by Ray; or with the RayService, by KubeRay.
    """

    ready: bool
    seen: bool
    serving: int
    running: int
    applications: int
    upgrading: bool
    ray_clusters: tuple[str, ...]
    told: tuple[str, ...]

    @property
    def state(self) -> str:
        """In a word: `ready`, `upgrading`, `serving` (but not all), `starting`."""
        if self.ready:
            return "ready"
        if not self.serving:
            return "starting"
        return "upgrading" if self.upgrading or not self.seen else "serving"

    def __str__(self) -> str:
        if not self.seen:
            return "the operator has not seen it yet"
        text = f"{self.running}/{self.applications} applications run, {self.serving} pods serve"
        return f"{text}, a second cluster is on its way" if self.upgrading else text


def service_condition(service: Object) -> ServiceCondition:
    """The condition that a RayService's status tells."""
    status = service.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
    generation = service["metadata"].get("generation", 0)
    active, pending = (status.get(f"{kind}ServiceStatus") or {} for kind in ("active", "pending"))
    # While there are two clusters, KubeRay asks the new one alone.
    asked = pending if pending.get("rayClusterName") else active
    found = asked.get("applicationStatuses") or {}
    wanted = _applications(service)
    running = sum((found.get(name) or {}).get("status") == "RUNNING" for name in wanted)
    seen = (status.get("observedGeneration") or 0) >= generation
    upgrading = conditions.get("UpgradeInProgress", {}).get("status") == "True"
    serves = conditions.get("Ready", {}).get("status") == "True"
    told = [text for name in wanted for text in _of_application(name, found.get(name) or {})]
    if conditions.get("Ready", {}).get("reason") in ("ValidationFailed", "InitializingTimeout"):
        told.insert(0, str(conditions["Ready"].get("message")))
    return ServiceCondition(
        ready=seen and serves and not upgrading and running == len(wanted),
        seen=seen,
        serving=int(status.get("numServeEndpoints") or 0),
        running=running,
        applications=len(wanted),
        upgrading=upgrading,
        ray_clusters=tuple(str(each["rayClusterName"]) for each in (active, pending) if each.get("rayClusterName")),
        told=tuple(told),
    )


def _applications(service: Object) -> list[str]:
    """The applications that the RayService is to have, by Ray's names of them."""
    config = yaml.safe_load(service["spec"].get("serveConfigV2") or "") or {}
    return [str(each.get("name", "default")) for each in config.get("applications") or []]


def _of_application(name: str, status: Object) -> Iterable[str]:
    if status.get("status") in (None, "", "RUNNING"):
        return
    yield f"application {name}: {status['status']}" + (f": {_line(status['message'])}" if status.get("message") else "")
    for deployment, its in (status.get("serveDeploymentStatuses") or {}).items():
        if its.get("status") != "HEALTHY" and its.get("message"):
            yield f"deployment {deployment} of it: {its.get('status')}: {_line(its['message'])}"


def _line(text: str) -> str:
    """The last line that says something: Python's tracebacks end in what went wrong."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""
