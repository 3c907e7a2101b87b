"""Settings of RayJobs, and jobs on their complete RayClusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from berth.components.core.settings import DefaultedSettings
from berth.components.core.types import Document, Duration, Name, NonEmpty
from berth.components.ray import kuberay_words
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.settings import RayShape

JobUntil = Literal["running", "succeeded", "submitted"]
"""State of a RayJob that `pulumi up` waits for."""

Amount = Annotated[float, Field(ge=0, le=10_000)]
"""Cores or GPUs that Ray reserves; fractions are allowed."""


class JobWait(DefaultedSettings):
    """Goal of `pulumi up` for a RayJob."""

    until: JobUntil = "running"
    """`running`: Ray runs the job. `succeeded`: the job has succeeded. `submitted`: the API server
    accepted the RayJob; for jobs that queue for capacity. A job that fails meanwhile fails the
    update, except with `submitted`."""
    timeout: Annotated[Duration, Field(examples=["30m"])] = "10m"
    """Longest wait; after it the update fails and reports the reasons."""


class JobShape(RayShape):
    """RayJob as written in YAML: a program that runs once, on its own or an existing RayCluster."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_JOBS

    entrypoint: Annotated[NonEmpty, Field(examples=["python train.py"])]
    """Shell command that runs on the head: `python -m train --epochs 3`."""
    runtime_env: Annotated[Document, Field(examples=[{"pip": ["torchmetrics"]}])] = {}
    """Runtime environment under Ray's own keys: pip, env_vars, working_dir and others
    (https://docs.ray.io/en/latest/ray-core/handling-dependencies.html#api-reference)."""
    submission_mode: Literal["K8sJobMode", "HTTPMode"] = "K8sJobMode"
    """`K8sJobMode`: a small pod submits the job, and its log is the job's. `HTTPMode`: KubeRay
    submits the job, and only Ray has the log."""
    entrypoint_num_cpus: Annotated[Amount | None, Field(examples=[1])] = None
    """Cores that Ray reserves for the command; with a reservation it may run on a worker. Default:
    none."""
    entrypoint_num_gpus: Annotated[Amount | None, Field(examples=[1])] = None
    """GPUs that Ray reserves for the command. Default: none."""
    backoff_limit: Annotated[int, Field(examples=[2], ge=0, le=100, strict=True)] = 0
    """Retries after a failure, each on a new RayCluster."""
    active_deadline: Annotated[Duration | None, Field(examples=["12h"])] = None
    """Time after which a running job fails. Default: none."""
    shutdown_after_job_finishes: bool = True
    """Delete the job's RayCluster when the job has ended."""
    ttl_after_finished: Annotated[Duration | None, Field(examples=["1h"])] = None
    """Delay between the end of the job and the deletion of its RayCluster. Default: none."""
    cluster: Annotated[Name | None, Field(examples=["train"])] = None
    """Engineer or named cluster of this environment whose RayCluster runs the job. Default: a
    RayCluster of the job's own, with the keys of a cluster, which is deleted when the job has
    ended."""
    wait: Annotated[JobWait, Field(examples=[{"until": "submitted"}])] = JobWait()
    """Goal of `pulumi up`."""

    def of_cluster(self) -> dict[str, Any]:
        """Return the keys that are about the job's own RayCluster, which is ready for the job."""
        written = super().of_cluster()
        if self.wait.until != "submitted" and "until" in written.get("wait", {}):
            written["wait"]["until"] = "ready"
        return written


@dataclass(frozen=True)
class RayJobSettings:
    """RayJob, complete."""

    name: str
    settings: JobShape
    cluster: RayClusterSettings
    """RayCluster that runs the job: the job's own, or that of a berth or named cluster."""
    own_cluster: bool
    wait: JobWait
