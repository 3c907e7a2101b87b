"""Rules for RayJobs and RayServices: settings that KubeRay or Ray would refuse."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.table import beside, broken
from berth.components.isolation import SERVE_PORT
from berth.components.ray.settings import RayShape
from berth.components.ray.workload_settings import JobShape, ServiceShape

_RUNTIME_ENV: frozenset[str] = frozenset(fast_yaml.load_beside(__file__, "runtime_env.yaml"))
"""Ray's own keys of a runtime environment."""

# Special characters of a shell within double quotes: KubeRay's submitter quotes the runtime
# environment so (kuberay v1.6.2, ray-operator/controllers/ray/common/job.go,
# BuildJobSubmitCommand).
_SHELL_CHARACTERS = "$`"

_OF_OWN_CLUSTER = ("backoff_limit", "shutdown_after_job_finishes", "ttl_after_finished")


def workload_problems(
    jobs: Mapping[str, JobShape], services: Mapping[str, ServiceShape], there: Collection[str]
) -> Iterable[Problem]:
    """Yield the problems of jobs and services, given the names of engineers and clusters."""
    for name, job in jobs.items():
        path: SettingPath = ("environment", "jobs", name)
        yield from broken(beside(__file__)["job_names"], path, name=name, length=len(name))
        yield from _runtime_env(
            job.runtime_env, (*path, "runtimeEnv"), by_shell=job.submission_mode == "K8sJobMode"
        )
        yield from (
            _on_existing_cluster(job, there, path)
            if job.cluster
            else broken(beside(__file__)["jobs"], path, job=job)
        )
    for name, service in services.items():
        path = ("environment", "services", name)
        yield from broken(beside(__file__)["service_names"], path, name=name, length=len(name))
        yield from _serve_config(service, (*path, "serveConfig"))
        for client in service.clients:
            yield from broken(
                beside(__file__)["clients"], path, client=client, name=name, port=SERVE_PORT
            )


def _on_existing_cluster(
    job: JobShape, there: Collection[str], path: SettingPath
) -> Iterable[Problem]:
    if job.cluster not in there:
        message = (
            "there is no engineer or cluster"
            f" {job.cluster!r}{did_you_mean(str(job.cluster), there)}"
        )
        wrong = tuple(("environment", kind, str(job.cluster)) for kind in ("engineers", "clusters"))
        yield Problem((*path, "cluster"), message, rests_on=wrong)
    for name, field in JobShape.model_fields.items():
        of_cluster = name in RayShape.model_fields or name in _OF_OWN_CLUSTER
        if of_cluster and name in job.model_fields_set:
            yield from broken(
                beside(__file__)["of_own_cluster"], (*path, str(field.alias)), job=job
            )


def _runtime_env(
    given: Mapping[str, Any], path: SettingPath, *, by_shell: bool
) -> Iterable[Problem]:
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
            yield from broken(beside(__file__)["by_shell"], where, mark=found[0])


def _texts(value: Any, path: SettingPath) -> Iterable[tuple[SettingPath, str]]:
    if isinstance(value, str):
        yield path, value
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from _texts(inner, (*path, key))


def _serve_config(service: ServiceShape, path: SettingPath) -> Iterable[Problem]:
    applications = service.serve_config.get("applications")
    if not isinstance(applications, list) or not applications:
        yield Problem(
            path,
            "needs `applications`: a list with an entry for each, such as - import_path: app:app",
        )
        return
    names: set[str] = set()
    prefixes: set[str] = set()
    for index, application in enumerate(applications):
        where: SettingPath = (*path, "applications", index)
        if not isinstance(application, dict):
            yield Problem(
                where, f"{application!r} is not a mapping; write import_path: MODULE:APPLICATION"
            )
            continue
        yield from _application(application, where)
        for key, default, seen in (("name", "default", names), ("route_prefix", "/", prefixes)):
            value = application.get(key, default)
            if value is not None and str(value) in seen:
                yield from broken(beside(__file__)["twice"], (*where, key), value=value)
            seen.add(str(value))
    http = service.serve_config.get("http_options")
    port = http.get("port", SERVE_PORT) if isinstance(http, dict) else SERVE_PORT
    if port != SERVE_PORT:
        yield from broken(beside(__file__)["serve_port"], path, port=port, right=SERVE_PORT)


def _application(application: Mapping[str, Any], path: SettingPath) -> Iterable[Problem]:
    named, prefix = application.get("import_path"), application.get("route_prefix", "/")
    import_path = named if isinstance(named, str) else ""
    yield from broken(
        beside(__file__)["applications"],
        path,
        import_path=import_path,
        whole=any(mark in import_path for mark in ":."),
        prefix=None if prefix is None else str(prefix),
        given=prefix,
    )
    yield from _remote(application, path)
    deployments = application.get("deployments")
    for index, deployment in enumerate(deployments if isinstance(deployments, list) else ()):
        if isinstance(deployment, dict):
            yield from _deployment(deployment, (*path, "deployments", index))


def _deployment(deployment: Mapping[str, Any], path: SettingPath) -> Iterable[Problem]:
    """Problems for which Ray refuses a deployment (tests/unit/stacks/ray_serve.json)."""
    replicas, scaling = deployment.get("num_replicas"), deployment.get("autoscaling_config")
    bounds = scaling if isinstance(scaling, dict) else {}
    least, most = (bounds.get(key, 1) for key in ("min_replicas", "max_replicas"))
    yield from broken(
        beside(__file__)["deployments"],
        path,
        replicas=replicas,
        too_few=isinstance(replicas, int) and replicas < 1,
        fixed=replicas not in (None, "auto"),
        scaling=scaling,
        least=least if isinstance(least, int) and isinstance(most, int) else None,
        most=most,
    )
    options = deployment.get("ray_actor_options")
    if isinstance(options, dict):
        yield from _remote(options, (*path, "ray_actor_options"))


def _remote(part: Mapping[str, Any], path: SettingPath) -> Iterable[Problem]:
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
            yield from broken(beside(__file__)["no_address"], (*path, key), address=address)
