"""Problems of an environment's RayJobs and RayServices."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from berth.components.core.problems import Problem, SettingPath
from berth.components.ray.job_settings import JobShape, RayJobSettings
from berth.components.ray.rules.jobs import JOBS, NamedJob
from berth.components.ray.rules.packages import PACKAGES, Packages
from berth.components.ray.rules.runtime_env import RUNTIME_ENVS, RuntimeEnv
from berth.components.ray.rules.services import SERVICES, NamedService, serve_runtime_envs
from berth.components.ray.service_settings import RayServiceSettings, ServiceShape


def workload_warnings(
    jobs: Iterable[RayJobSettings], services: Iterable[RayServiceSettings], *, internet: bool
) -> Iterator[Problem]:
    """Yield what jobs and services install, but likely cannot, on their RayClusters."""
    for job in jobs:
        packages = Packages(job.settings.runtime_env, job.cluster, internet)
        yield from PACKAGES.warnings(packages, ("environment", "jobs", job.name, "runtimeEnv"))
    for service in services:
        for place, values in serve_runtime_envs(service.settings):
            if isinstance(values, dict):
                packages = Packages(values, service.cluster, internet)
                path: SettingPath = ("environment", "services", service.name, *place)
                yield from PACKAGES.warnings(packages, path)


def workload_problems(
    jobs: Mapping[str, JobShape], services: Mapping[str, ServiceShape], clusters: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of jobs and services, given the names of engineers and clusters."""
    for name, job in jobs.items():
        path: SettingPath = ("environment", "jobs", name)
        yield from JOBS.problems(NamedJob(name, job, clusters), path)
        runtime_env = RuntimeEnv(job.runtime_env, by_shell=job.submission_mode == "K8sJobMode")
        yield from RUNTIME_ENVS.problems(runtime_env, (*path, "runtimeEnv"))
    for name, service in services.items():
        path = ("environment", "services", name)
        yield from SERVICES.problems(NamedService(name, service), path)
        for place, values in serve_runtime_envs(service):
            if isinstance(values, dict):
                yield from RUNTIME_ENVS.problems(RuntimeEnv(values), (*path, *place))
