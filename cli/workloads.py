"""RayJobs and RayServices in `berth status`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich import box
from rich.table import Table
from rich.text import Text

from berth.cli.life import age
from berth.components.cluster.api import RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES, ClusterApi, Object, within
from berth.components.core.owner import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL
from berth.components.hardware.names import POOL_LABEL
from berth.components.isolation import SERVE_PORT
from berth.components.ray.condition import condition_of, gpus_of
from berth.components.ray.readiness import reasons_of_job, reasons_of_service
from berth.components.ray.workload_condition import job_condition, service_condition


@dataclass(frozen=True)
class Job:
    """A RayJob.

    Attributes:
        name: the job's name in the settings.
        namespace: where it is.
        ray_job: its name in the cluster, which tells its content.
        ray_cluster: the RayCluster that it runs on, "" where that is not known yet.
        stack: the stack that made it.
        state: Ray's state of it, or KubeRay's before Ray has it.
        ready: it runs, or has ended well.
        created: when it was made.
        ended: when it ended, "" where it has not.
        reasons: why it is not `ready`.
    """

    name: str
    namespace: str
    ray_job: str
    ray_cluster: str
    stack: str
    state: str
    ready: bool
    created: str
    ended: str
    reasons: list[str]


@dataclass(frozen=True)
class Service:
    """A RayService.

    Attributes:
        name: the service's name.
        namespace: where it is.
        stack: the stack that made it.
        pool: the node pool of its workers.
        state: `ready`, `upgrading`, `serving` (not all applications run), or `starting`.
        ready: the newest edit serves.
        applications_running: applications that run.
        applications: applications that there should be.
        serving: pods that answer requests.
        workers_ready: workers of its RayClusters that are ready.
        workers_desired: workers that they should have.
        gpus: GPUs that these ask for.
        address: where pods send requests to.
        created: when it was made.
        reasons: why it is not ready.
    """

    name: str
    namespace: str
    stack: str
    pool: str
    state: str
    ready: bool
    applications_running: int
    applications: int
    serving: int
    workers_ready: int
    workers_desired: int
    gpus: int
    address: str
    created: str
    reasons: list[str]


def jobs(api: ClusterApi, environment: str) -> list[Job]:
    """The RayJobs that an environment's stacks made.

    Raises:
        ClusterError: the API server can't be asked.
    """
    found, _ = api.list(RAY_JOBS, labelSelector=f"{ENVIRONMENT_LABEL}={environment},{OWNER_LABELS['job']}")
    return [_job(api, each) for each in found]


def services(api: ClusterApi, environment: str) -> list[Service]:
    """The RayServices that an environment's stacks made.

    Raises:
        ClusterError: the API server can't be asked.
    """
    found, _ = api.list(RAY_SERVICES, labelSelector=f"{ENVIRONMENT_LABEL}={environment},{OWNER_LABELS['service']}")
    return [_service(api, each) for each in found]


def _job(api: ClusterApi, job: Object) -> Job:
    metadata, condition = job["metadata"], job_condition(job)
    ready = condition.running or condition.succeeded
    return Job(
        name=metadata["labels"][OWNER_LABELS["job"]],
        namespace=metadata["namespace"],
        ray_job=metadata["name"],
        ray_cluster=condition.ray_cluster,
        stack=metadata["labels"][STACK_LABEL],
        state=condition.state or "New",
        ready=ready,
        created=str(metadata.get("creationTimestamp") or ""),
        ended=str((job.get("status") or {}).get("endTime") or ""),
        reasons=[] if ready else reasons_of_job(api, (metadata["namespace"], metadata["name"])),
    )


def _service(api: ClusterApi, service: Object) -> Service:
    metadata, condition = service["metadata"], service_condition(service)
    clusters, _ = api.list(within(metadata["namespace"], RAY_CLUSTERS))
    its = [each for each in clusters if each["metadata"]["name"] in condition.ray_clusters]
    conditions = [condition_of(each) for each in its]
    return Service(
        name=metadata["labels"][OWNER_LABELS["service"]],
        namespace=metadata["namespace"],
        stack=metadata["labels"][STACK_LABEL],
        pool=service["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]["spec"]["nodeSelector"][POOL_LABEL],
        state=condition.state,
        ready=condition.ready,
        applications_running=condition.running,
        applications=condition.applications,
        serving=condition.serving,
        workers_ready=sum(each.workers_ready for each in conditions),
        workers_desired=sum(each.workers_desired for each in conditions),
        gpus=sum(gpus_of(each) for each in its),
        address=f"http://{metadata['name']}-serve-svc.{metadata['namespace']}:{SERVE_PORT}",
        created=str(metadata.get("creationTimestamp") or ""),
        reasons=[] if condition.ready else reasons_of_service(api, (metadata["namespace"], metadata["name"])),
    )


def jobs_table(shown: Iterable[Job]) -> Table:
    """RayJobs for people."""
    now = datetime.now(tz=UTC)
    grid = _grid("jobs", "job", "namespace", "RayJob", "state", "on RayCluster", "stack", "age", "ended")
    for job in shown:
        ended = f"{age(job.ended, now)} ago" if job.ended else "–"
        state = Text(job.state, style="green" if job.ready else "yellow")
        row = (job.name, job.namespace, job.ray_job, state, job.ray_cluster or "–", job.stack)
        grid.add_row(*row, age(job.created, now), ended)
    return grid


def services_table(shown: Iterable[Service]) -> Table:
    """RayServices for people."""
    now = datetime.now(tz=UTC)
    grid = _grid(
        "services", "service", "state", "applications", "workers ready", "GPUs", "pool", "stack", "age", "address"
    )
    for service in shown:
        grid.add_row(
            service.name,
            Text(service.state, style="green" if service.ready else "yellow"),
            f"{service.applications_running}/{service.applications}",
            f"{service.workers_ready}/{service.workers_desired}",
            str(service.gpus),
            service.pool,
            service.stack,
            age(service.created, now),
            service.address,
        )
    return grid


def _grid(title: str, *columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD, title=title, title_justify="left")
