"""Rules of RayServices: their names, their clients, and the configuration of Ray Serve."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.isolation import SERVE_PORT
from berth.components.ray.service_settings import ServiceShape

_LONGEST_NAME = 47
"""Characters of a RayService's name (kuberay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""

_UNIQUE_KEYS = {"name": "default", "route_prefix": "/"}
"""Keys that tell the applications of a RayService apart, with Ray's defaults."""


@dataclass(frozen=True)
class NamedService:
    """A service of an environment: its name, and its settings as written."""

    name: str
    service: ServiceShape


@dataclass(frozen=True)
class _ServePart:
    """An application or deployment in a configuration of Ray Serve.

    Attributes:
        at: place below the service's settings.
        values: the part as written.
    """

    at: SettingPath
    values: Mapping[str, Any]


SERVICES = Rules[NamedService](ServiceShape)
"""Rules of a RayService."""


@SERVICES.problem()
def service_name_above_the_longest(named: NamedService) -> str | None:
    """KubeRay leaves the name of a RayService some characters."""
    length = len(named.name)
    if length > _LONGEST_NAME:
        return (
            f"{named.name!r} has {length} characters; KubeRay leaves a RayService {_LONGEST_NAME}"
        )
    return None


@SERVICES.problem("clients")
def client_that_is_a_berth(named: NamedService) -> Iterator[Breach]:
    """No berth reaches another one."""
    for client in named.service.clients:
        if client.startswith("berth-"):
            yield Breach(
                f"{client!r} is a berth's namespace, and no berth reaches another; name those of"
                f" gateways and the like, or use kubectl port-forward -n berth-{named.name}"
                f" service/{named.name}-serve-svc {SERVE_PORT}"
            )


@SERVICES.problem("serveConfig")
def serve_config_without_applications(named: NamedService) -> str | None:
    """Ray Serve runs at least one application."""
    if _entries(named.service.serve_config, "applications"):
        return None
    return "needs `applications`: a list with an entry for each, such as - import_path: app:app"


@SERVICES.problem("serveConfig.applications.*")
def application_that_is_not_a_mapping(named: NamedService) -> Iterator[Breach]:
    """An application is a mapping."""
    for index, application in enumerate(_entries(named.service.serve_config, "applications")):
        if not isinstance(application, dict):
            yield Breach(
                f"{application!r} is not a mapping; write import_path: MODULE:APPLICATION",
                at=("serveConfig", "applications", index),
            )


@SERVICES.problem("serveConfig.applications.*.import_path")
def import_path_of_no_application(named: NamedService) -> Iterator[Breach]:
    """Ray refuses an import path without an application (tests/unit/stacks/ray_serve.json)."""
    for application in _applications(named.service):
        written = application.values.get("import_path")
        import_path = written if isinstance(written, str) else ""
        at_path = (*application.at, "import_path")
        if not import_path:
            yield Breach(
                "is required: MODULE:APPLICATION, as Python finds it in the image or in"
                " working_dir",
                at=at_path,
            )
        elif not any(mark in import_path for mark in ":."):
            yield Breach(
                f"{import_path!r} names a module and no application in it, which Ray refuses; write"
                f" {import_path}:APPLICATION",
                at=at_path,
            )


@SERVICES.problem("serveConfig.applications.*.route_prefix")
def route_without_a_slash(named: NamedService) -> Iterator[Breach]:
    """A route begins with a slash."""
    for application in _applications(named.service):
        prefix = application.values.get("route_prefix", "/")
        if prefix is not None and not str(prefix).startswith("/"):
            yield Breach(
                f"{prefix!r} does not begin with '/'", at=(*application.at, "route_prefix")
            )


@SERVICES.problem("serveConfig.applications.*.name", "serveConfig.applications.*.route_prefix")
def applications_that_are_not_told_apart(named: NamedService) -> Iterator[Breach]:
    """Every application has a name and a route of its own."""
    for key, default in _UNIQUE_KEYS.items():
        earlier: set[str] = set()
        for application in _applications(named.service):
            value = application.values.get(key, default)
            if value is not None and str(value) in earlier:
                yield Breach(
                    f"{value!r} is also another application's; give every application a `{key}` of"
                    " its own",
                    at=(*application.at, key),
                )
            earlier.add(str(value))


@SERVICES.problem("serveConfig.http_options.port")
def port_that_nobody_reaches(named: NamedService) -> str | None:
    """The Service and the NetworkPolicies let requests in at one port."""
    config = named.service.serve_config
    options = config.get("http_options")
    port = options.get("port", SERVE_PORT) if isinstance(options, dict) else SERVE_PORT
    if port == SERVE_PORT or not _entries(config, "applications"):
        return None
    return (
        f"{port!r} is not where the Service and the NetworkPolicies let requests in; that is"
        f" {SERVE_PORT}: take it out"
    )


@SERVICES.problem(
    "serveConfig.applications.*.deployments.*.num_replicas",
    "serveConfig.applications.*.deployments.*.autoscaling_config.max_replicas",
)
def replicas_that_ray_refuses(named: NamedService) -> Iterator[Breach]:
    """Ray refuses some numbers of replicas (tests/unit/stacks/ray_serve.json)."""
    for deployment in _deployments(named.service):
        replicas = deployment.values.get("num_replicas")
        scaling = deployment.values.get("autoscaling_config")
        bounds = scaling if isinstance(scaling, dict) else {}
        least = bounds.get("min_replicas", 1)
        most = bounds.get("max_replicas", 1)
        at_replicas = (*deployment.at, "num_replicas")
        if isinstance(replicas, int) and replicas < 1:
            yield Breach(
                f"{replicas} is less than 1, which Ray refuses; for none while nobody asks:"
                " autoscaling_config: {min_replicas: 0}",
                at=at_replicas,
            )
        if scaling and replicas not in (None, "auto"):
            yield Breach(
                "is beside autoscaling_config, and Ray refuses the two together; take one of them"
                " out",
                at=at_replicas,
            )
        if isinstance(least, int) and isinstance(most, int) and least > most:
            yield Breach(
                f"{most} is less than min_replicas, {least}, and Ray would not start the"
                " application; raise it",
                at=(*deployment.at, "autoscaling_config", "max_replicas"),
            )


@SERVICES.problem(
    "serveConfig.applications.*.runtime_env",
    "serveConfig.applications.*.deployments.*.ray_actor_options.runtime_env",
)
def runtime_env_that_is_not_a_mapping(named: NamedService) -> Iterator[Breach]:
    """A runtime environment is a mapping."""
    for place, runtime_env in serve_runtime_envs(named.service):
        if not isinstance(runtime_env, dict):
            yield Breach(f"{runtime_env!r} is not a mapping; write its keys and values", at=place)


@SERVICES.problem(
    "serveConfig.applications.*.runtime_env.*",
    "serveConfig.applications.*.deployments.*.ray_actor_options.runtime_env.*",
)
def folder_that_is_not_uploaded(named: NamedService) -> Iterator[Breach]:
    """Ray Serve uploads no folders."""
    for at, runtime_env in serve_runtime_envs(named.service):
        if not isinstance(runtime_env, dict):
            continue
        for key, address in _addresses(runtime_env):
            if isinstance(address, str) and "://" not in address:
                yield Breach(
                    f"{address!r} is not an address, such as https://….zip, so Ray refuses it; for"
                    " files beside the settings: `code`",
                    at=(*at, key),
                )


def serve_runtime_envs(service: ServiceShape) -> Iterator[tuple[SettingPath, Any]]:
    """Yield the runtime environments of applications and deployments with their places."""
    for application in _applications(service):
        yield (*application.at, "runtime_env"), application.values.get("runtime_env", {})
    for deployment in _deployments(service):
        options = deployment.values.get("ray_actor_options")
        if isinstance(options, dict):
            at = (*deployment.at, "ray_actor_options", "runtime_env")
            yield at, options.get("runtime_env", {})


def _addresses(runtime_env: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the addresses of code in a runtime environment with their keys."""
    yield "working_dir", runtime_env.get("working_dir")
    for module in _entries(runtime_env, "py_modules"):
        yield "py_modules", module


def _applications(service: ServiceShape) -> Iterator[_ServePart]:
    at: SettingPath = ("serveConfig", "applications")
    for index, application in enumerate(_entries(service.serve_config, "applications")):
        if isinstance(application, dict):
            yield _ServePart((*at, index), application)


def _deployments(service: ServiceShape) -> Iterator[_ServePart]:
    for application in _applications(service):
        for index, deployment in enumerate(_entries(application.values, "deployments")):
            if isinstance(deployment, dict):
                yield _ServePart((*application.at, "deployments", index), deployment)


def _entries(values: Mapping[str, Any], key: str) -> list[Any]:
    """Return the entries of a list; none for anything else."""
    entries = values.get(key)
    return entries if isinstance(entries, list) else []
