"""RayJobs and RayServices: as they are written in YAML, and as they are after the defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from berth.components.core.settings import Settings
from berth.components.core.types import Duration, Name, NonEmpty
from berth.components.ray.settings import RayClusterSettings, RayClusterShape, RayShape, Wait

SubmissionMode = Literal["K8sJobMode", "HTTPMode"]
"""How KubeRay gives a job to Ray."""

JobUntil = Literal["running", "succeeded", "submitted"]
"""What `pulumi up` waits for of a RayJob."""

UpgradeStrategy = Literal["NewCluster", "Recreate"]
"""How an edit of a RayService's cluster reaches it."""


def _plain(value: Any) -> Any:
    """A value of YAML as JSON has it too: a file's numbers remember how they were written, and dates would be other text elsewhere."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    for number in (int, float):
        if isinstance(value, number):
            return number(value)
    raise ValueError(f"{str(value)!r} is neither text nor number; put it in quotes")


Document = Annotated[dict[NonEmpty, Any], AfterValidator(_plain)]
"""Settings of Ray's own, by its own keys."""

Amount = Annotated[float, Field(ge=0, le=10_000)]
"""Cores or GPUs that Ray sets aside; fractions count."""


class JobWait(Settings):
    """What `pulumi up` waits for."""

    until: JobUntil | None = None
    """`running`: Ray runs it (default). `succeeded`: it has ended well. `submitted`: the API server took it; for jobs that
    queue for capacity. A job that fails fails the update, but for `submitted`."""
    timeout: Duration | None = None
    """How long to wait before the update fails and says why. Default: 10m."""


class JobShape(RayClusterShape):
    """A RayJob as it is written in YAML: a program that runs once, on a RayCluster of its own or one that is there."""

    entrypoint: NonEmpty
    """The command that runs on the head, by a shell: `python -m train --epochs 3`."""
    runtime_env: Document = {}
    """Ray's runtime environment, by Ray's own keys: pip, env_vars, working_dir and others
    (https://docs.ray.io/en/latest/ray-core/handling-dependencies.html#api-reference)."""
    cluster: Name | None = None
    """The engineer or named cluster of this environment whose RayCluster it runs on. Default: one of its own, which the keys of a
    cluster describe and which goes when the job has ended."""
    submission_mode: SubmissionMode = "K8sJobMode"
    """`K8sJobMode`: a small pod submits it, whose log is the job's (default). `HTTPMode`: KubeRay submits it, and only Ray
    itself has the log."""
    entrypoint_num_cpus: Amount | None = None
    """Cores that the command itself keeps. With one of these it may run on a worker. Default: none."""
    entrypoint_num_gpus: Amount | None = None
    """GPUs that the command itself keeps. Default: none."""
    backoff_limit: Annotated[int, Field(ge=0, le=100, strict=True)] | None = None
    """How often it is tried again when it fails, each time on a new RayCluster. Default: 0."""
    active_deadline: Duration | None = None
    """After so long it is ended, as failed. Default: never."""
    shutdown_after_job_finishes: bool | None = None
    """Its RayCluster goes when it has ended. Default: true."""
    ttl_after_finished: Duration | None = None
    """So long after the job has ended its RayCluster goes. Default: at once."""
    wait: JobWait = JobWait()
    """What `pulumi up` waits for."""

    @property
    def shape(self) -> RayShape:
        """The RayCluster's part of these settings."""
        until = None if self.wait.until is None else "submitted" if self.wait.until == "submitted" else "ready"
        return _shape_of(self, Wait(until=until, timeout=self.wait.timeout))


class ServiceShape(RayClusterShape):
    """A RayService as it is written in YAML: applications of Ray Serve on a RayCluster of their own."""

    serve_config: Document
    """Configuration of Ray Serve: `applications`, and what else `serve deploy` takes
    (https://docs.ray.io/en/latest/serve/production-guide/config.html)."""
    code: NonEmpty | None = None
    """A Python file, or a folder of such, with the applications' code; the path counts from the project's folder. It travels in the
    pods, where `import_path` finds it. 128 KiB at most. Default: the code is in the image or in a `working_dir`."""
    clients: list[Name] = []
    """Namespaces of the cluster whose pods may send requests to port 8000, such as that of a gateway. Default: none but its own."""
    upgrade_strategy: UpgradeStrategy = "NewCluster"
    """What an edit of the cluster does. `NewCluster`: a second one is made, and the Service moves to it when it serves
    (default); the quota has room for both. `Recreate`: the service goes, and is made anew: for GPUs that there are no more of."""
    wait: Wait = Wait()
    """What `pulumi up` waits for; `ready`: its applications run and answer."""

    @property
    def shape(self) -> RayShape:
        """The RayCluster's part of these settings."""
        return _shape_of(self, self.wait)


def _shape_of(shape: RayClusterShape, wait: Wait) -> RayShape:
    written = shape.model_dump(include=set(RayClusterShape.model_fields), exclude_none=True)
    return RayShape.model_validate({**written, "wait": wait.model_dump()})


class RayJobSettings(Settings):
    """A RayJob, complete."""

    name: Name
    cluster: RayClusterSettings
    """The RayCluster that it runs on: its own, or that of a berth or a named cluster."""
    own_cluster: bool
    """The RayCluster comes and goes with it."""
    entrypoint: str
    runtime_env: dict[str, Any] = {}
    submission_mode: SubmissionMode
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    backoff_limit: int = 0
    active_deadline: Duration | None = None
    shutdown_after_job_finishes: bool = True
    ttl_after_finished: Duration | None = None
    wait_until: JobUntil
    wait_timeout: Duration


class RayServiceSettings(Settings):
    """A RayService, complete."""

    name: Name
    cluster: RayClusterSettings
    serve_config: dict[str, Any]
    code: str | None = None
    """The path of the applications' code."""
    files: dict[str, str] = {}
    """Text of each file of the code, by its path in the code's folder; stacks/service_code.py reads it."""
    clients: list[str] = []
    upgrade_strategy: UpgradeStrategy = "NewCluster"
