"""Rules for RayJobs and RayServices: settings that KubeRay or Ray would refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.isolation import SERVE_PORT
from berth.components.ray.settings import BerthShape, RayShape
from berth.components.ray.workload_settings import JobShape, ServiceShape

# The name of a RayJob or RayService has 47 characters at most (kuberay v1.6.2,
# ray-operator/controllers/ray/utils/constant.go), and a job's name ends in "-" and eight characters
# of its content.
SERVICE_NAME_LIMIT = 47
JOB_NAME_LIMIT = SERVICE_NAME_LIMIT - 9

# Keys of Ray (https://docs.ray.io/en/latest/ray-core/handling-dependencies.html#api-reference). A
# plugin of the image may know more, so other keys are refused only if they look like one of these.
_RUNTIME_ENV = frozenset(
    """
    conda config container env_vars excludes image_uri java_jars nsight pip py_executable py_modules uv
    worker_process_setup_hook working_dir
    """.split()
)

# Special characters of a shell within double quotes: KubeRay's submitter quotes the runtime
# environment so (kuberay v1.6.2, ray-operator/controllers/ray/common/job.go,
# BuildJobSubmitCommand).
_SHELL_CHARACTERS = "$`"

_OF_OWN_CLUSTER = ("backoff_limit", "shutdown_after_job_finishes", "ttl_after_finished")


class Workloads(Protocol):
    """Settings of an environment that has berths, named clusters, jobs and services by name."""

    @property
    def engineers(self) -> Mapping[str, BerthShape]: ...  # noqa: D102 - named in the class
    @property
    def clusters(self) -> Mapping[str, BerthShape]: ...  # noqa: D102
    @property
    def jobs(self) -> Mapping[str, JobShape]: ...  # noqa: D102
    @property
    def services(self) -> Mapping[str, ServiceShape]: ...  # noqa: D102


def problems(settings: Workloads) -> Iterable[Problem]:
    """Yield the problems of an environment's jobs and services."""
    for name, job in settings.jobs.items():
        path: Path = ("environment", "jobs", name)
        yield from _too_long(name, JOB_NAME_LIMIT, "a RayJob and the end that tells its content", path)
        yield from _runtime_env(job.runtime_env, (*path, "runtimeEnv"), by_shell=job.submission_mode == "K8sJobMode")
        yield from (
            _on_existing_cluster(job, settings, path)
            if job.cluster
            else broken(beside(__file__)["jobs"], path, job=job)
        )
    for name, service in settings.services.items():
        path = ("environment", "services", name)
        yield from _too_long(name, SERVICE_NAME_LIMIT, "a RayService", path)
        yield from _serve_config(service, (*path, "serveConfig"))
        for client in service.clients:
            if client.startswith("berth-"):
                yield Problem(
                    (*path, "clients"),
                    f"{client!r} is a berth's namespace, and no berth reaches another; name those of gateways and the"
                    f" like, or use kubectl port-forward -n berth-{name} service/{name}-serve-svc {SERVE_PORT}",
                )


def _too_long(name: str, limit: int, what: str, path: Path) -> Iterable[Problem]:
    if len(name) > limit:
        yield Problem(path, f"{name!r} has {len(name)} characters; KubeRay leaves {what} {limit}")


def _on_existing_cluster(job: JobShape, settings: Workloads, path: Path) -> Iterable[Problem]:
    there = {**settings.engineers, **settings.clusters}
    if job.cluster not in there:
        message = f"there is no engineer or cluster {job.cluster!r}{did_you_mean(str(job.cluster), there)}"
        wrong = tuple(("environment", kind, str(job.cluster)) for kind in ("engineers", "clusters"))
        yield Problem((*path, "cluster"), message, rests_on=wrong)
    for name, field in JobShape.model_fields.items():
        of_cluster = name in RayShape.model_fields or name in _OF_OWN_CLUSTER
        if of_cluster and name in job.model_fields_set:
            message = (
                f"is about a RayCluster of the job's own, but it runs on that of {job.cluster!r}; take one"
                " of the two out"
            )
            yield Problem((*path, str(field.alias)), message)


def _runtime_env(given: Mapping[str, Any], path: Path, *, by_shell: bool) -> Iterable[Problem]:
    for key in given:
        hint = did_you_mean(key, _RUNTIME_ENV)
        if key not in _RUNTIME_ENV and hint.startswith("; did you mean"):
            yield Problem((*path, key), f"unknown key {key!r}{hint}")
    variables = given.get("env_vars")
    if variables is not None and not isinstance(variables, dict):
        yield Problem((*path, "env_vars"), f"{variables!r} is not a mapping; write NAME: VALUE")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        if not isinstance(value, str):
            yield Problem((*path, "env_vars", name), f"{value!r} is not text; put it in quotes")
    for where, text in _texts(given, path) if by_shell else ():
        if found := [mark for mark in _SHELL_CHARACTERS if mark in text]:
            yield Problem(
                where,
                f"KubeRay's submitter hands this to a shell, which would take {found[0]!r} for its own; take it out,"
                " or write `submissionMode: HTTPMode`, which uses no shell",
            )


def _texts(value: Any, path: Path) -> Iterable[tuple[Path, str]]:
    """Yield every text in a value with its path."""
    if isinstance(value, str):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _texts(inner, (*path, key))


def _serve_config(service: ServiceShape, path: Path) -> Iterable[Problem]:
    applications = service.serve_config.get("applications")
    if not isinstance(applications, list) or not applications:
        yield Problem(path, "needs `applications`: a list with an entry for each, such as - import_path: app:app")
        return
    names: set[str] = set()
    prefixes: set[str] = set()
    for index, application in enumerate(applications):
        where: Path = (*path, "applications", index)
        if not isinstance(application, dict):
            yield Problem(where, f"{application!r} is not a mapping; write import_path: MODULE:APPLICATION")
            continue
        yield from _application(application, where)
        for key, default, seen in (("name", "default", names), ("route_prefix", "/", prefixes)):
            value = application.get(key, default)
            if value is not None and str(value) in seen:
                yield Problem(
                    (*where, key),
                    f"{value!r} is also another application's; give every application a `{key}` of its own",
                )
            seen.add(str(value))
    http = service.serve_config.get("http_options")
    port = http.get("port", SERVE_PORT) if isinstance(http, dict) else SERVE_PORT
    if port != SERVE_PORT:
        yield Problem(
            (*path, "http_options", "port"),
            f"{port!r} is not where the Service and the NetworkPolicies let requests in; that is {SERVE_PORT}:"
            " take it out",
        )


def _application(application: Mapping[str, Any], path: Path) -> Iterable[Problem]:
    import_path = application.get("import_path")
    if not isinstance(import_path, str) or not import_path:
        yield Problem(
            (*path, "import_path"), "is required: MODULE:APPLICATION, as Python finds it in the image or in working_dir"
        )
    elif not any(mark in import_path for mark in ":."):
        message = (
            f"{import_path!r} names a module and no application in it, which Ray refuses; write"
            f" {import_path}:APPLICATION"
        )
        yield Problem((*path, "import_path"), message)
    prefix = application.get("route_prefix", "/")
    if prefix is not None and not str(prefix).startswith("/"):
        yield Problem((*path, "route_prefix"), f"{prefix!r} does not begin with '/'")
    yield from _remote(application, path)
    deployments = application.get("deployments")
    for index, deployment in enumerate(deployments if isinstance(deployments, list) else ()):
        if isinstance(deployment, dict):
            yield from _deployment(deployment, (*path, "deployments", index))


def _deployment(deployment: Mapping[str, Any], path: Path) -> Iterable[Problem]:
    """Problems for which Ray refuses a deployment (tests/unit/stacks/ray_serve.json)."""
    replicas = deployment.get("num_replicas")
    if isinstance(replicas, int) and replicas < 1:
        message = (
            f"{replicas} is less than 1, which Ray refuses; for none while nobody asks: autoscaling_config:"
            f" {{min_replicas: 0}}"
        )
        yield Problem((*path, "num_replicas"), message)
    if replicas not in (None, "auto") and deployment.get("autoscaling_config"):
        message = "is beside autoscaling_config, and Ray refuses the two together; take one of them out"
        yield Problem((*path, "num_replicas"), message)
    scaling = deployment.get("autoscaling_config")
    if isinstance(scaling, dict):
        least, most = scaling.get("min_replicas", 1), scaling.get("max_replicas", 1)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            message = f"{most} is less than min_replicas, {least}, and Ray would not start the application; raise it"
            yield Problem((*path, "autoscaling_config", "max_replicas"), message)
    options = deployment.get("ray_actor_options")
    if isinstance(options, dict):
        yield from _remote(options, (*path, "ray_actor_options"))


def _remote(part: Mapping[str, Any], path: Path) -> Iterable[Problem]:
    """Yield problems of a runtime environment for Ray Serve, which uploads no folders."""
    runtime_env = part.get("runtime_env", {})
    path = (*path, "runtime_env")
    if not isinstance(runtime_env, dict):
        yield Problem(path, f"{runtime_env!r} is not a mapping")
        return
    yield from _runtime_env(runtime_env, path, by_shell=False)
    modules = runtime_env.get("py_modules")
    named = [("working_dir", runtime_env.get("working_dir"))]
    named += [("py_modules", module) for module in (modules if isinstance(modules, list) else ())]
    for key, address in named:
        if isinstance(address, str) and "://" not in address:
            message = (
                f"{address!r} is not an address, such as https://….zip, so Ray refuses it; for files beside"
                " the settings: `code`"
            )
            yield Problem((*path, key), message)
