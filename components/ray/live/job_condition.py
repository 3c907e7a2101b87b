"""Condition of a RayJob. Pure."""

from dataclasses import dataclass

from berth.components.cluster.api import Object

# Final states of a failed RayJob (kuberay v1.6.2, ray-operator/apis/ray/v1/rayjob_types.go).
_ENDED_BADLY = ("Failed", "ValidationFailed")

_OF_KUBERAY = {
    "": "waiting for the KubeRay operator",
    "Initializing": "waiting for its RayCluster",
    "Waiting": "waiting to be submitted",
    "Retrying": "trying again on a new RayCluster",
    "Suspending": "being suspended",
    "Suspended": "suspended",
}
"""Words for KubeRay's states of a RayJob; other states are Ray's, and their own words."""


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
        return _OF_KUBERAY.get(self.state, self.state.lower())


def job_condition(job: Object) -> JobCondition:
    """Return the condition that a RayJob's status describes."""
    status = job.get("status") or {}
    deployment = str(status.get("jobDeploymentStatus") or "")
    ray_state = str(status.get("jobStatus") or "")
    succeeded = deployment == "Complete" and ray_state == "SUCCEEDED"
    failed = deployment in _ENDED_BADLY or (deployment == "Complete" and not succeeded)
    started = deployment == "Running" and ray_state in ("RUNNING", "SUCCEEDED")
    return JobCondition(
        state=_state_of(deployment, ray_state, failed=failed),
        running=started or succeeded,
        succeeded=succeeded,
        failed=failed,
        reason=": ".join(str(status[key]) for key in ("reason", "message") if status.get(key)),
        ray_cluster=str(status.get("rayClusterName") or ""),
    )


def _state_of(deployment: str, ray_state: str, *, failed: bool) -> str:
    """Return Ray's state of a job once Ray has the job, else KubeRay's."""
    if failed:
        return ray_state if ray_state in ("FAILED", "STOPPED") else "FAILED"
    return ray_state if deployment in ("Running", "Complete") else deployment
