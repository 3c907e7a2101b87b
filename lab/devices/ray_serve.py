"""Ray Serve of a simulated Ray cluster: answers of its dashboard and of its proxy.

No container runs, and no code: an application whose configuration Ray accepts, and whose replicas
find room, counts as running, and its message says that its code was not run. Deployments, and the
resources of their replicas, are known only where the configuration names them. The transition
between states takes no time. A worker is one of Serve as soon as its pod is ready.

Answers to (recorded): Ray 2.60.0's own answers, in tests/unit/lab/devices/ray_serve.json
Answers to (read): Ray 2.60.0, python/ray/serve/schema.py, ServeDeploySchema: what is refused;
    python/ray/serve/_private/proxy_router.py, ready_for_traffic: the health of a head's proxy
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import web

from berth.lab.devices.ray_pods import RayNode

DASHBOARD_PORT, PROXY_PORT = 8265, 8000
APPLICATIONS = "/api/serve/applications/"
NOT_RUN = "simulated: its code was not run, so that nobody knows whether it works"

# ray 2.60.0, python/ray/serve/config.py, AutoscalingConfig.
_DOWNSCALE_SECONDS = 600.0

_API_TYPES = ("imperative", "declarative")


@dataclass
class Room:
    """Capacity of a node, by its uid."""

    uid: str
    free: Counter[str]  # resources that no replica has
    used: bool = False  # whether a replica is there that needs resources

    def place(self, needs: Mapping[str, float]) -> bool:
        """Reserve the resources that a replica needs; return whether all of them are free."""
        if any(self.free[name] < amount for name, amount in needs.items()):
            return False
        self.free.subtract(needs)
        self.used |= bool(needs)
        return True


@dataclass
class Load:
    """Demand of replicas for the resources of nodes."""

    rooms: list[Room]
    waiting: list[Mapping[str, float]] = field(default_factory=list)  # resources of replicas that no node has room for

    def place(self, needs: Mapping[str, float]) -> bool:
        """Put a replica on the first node with room; return whether there is one."""
        placed = any(room.place(needs) for room in self.rooms)
        if not placed:
            self.waiting.append(needs)
        return placed


class RayServe:
    """Ray Serve of one head; a new pod knows nothing of the last one's."""

    def __init__(self) -> None:
        self._config: Mapping[str, Any] | None = None
        self._had_routes = False
        self._asked: dict[str, float] = {}

    @property
    def runs(self) -> bool:
        """Whether Serve was started, by the first configuration, and its proxy listens."""
        return self._config is not None

    def dashboard(self, method: str, target: str, body: bytes, nodes: Sequence[RayNode]) -> web.Response:
        """Return the dashboard's answer to a request for a path with a query."""
        url = urlsplit(target)
        if url.path != APPLICATIONS or method not in ("GET", "PUT"):
            return _response(
                501, f"the lab simulates Ray Serve and jobs only, not the dashboard's {method} {url.path}: unknown"
            )
        if method == "PUT":
            return self._put(body)
        kind = parse_qs(url.query).get("api_type", ["declarative"])[0]
        if kind.lower() not in _API_TYPES:
            return _response(400, f"Invalid 'api_type' value: '{kind}'. Must be one of: {', '.join(_API_TYPES)}")
        return _response(200, json.dumps(self._details(nodes)[0]), "application/json")

    def load(self, nodes: Sequence[RayNode]) -> Load:
        """Return the demand of replicas for the nodes, for Ray's autoscaler."""
        return self._details(nodes)[1]

    def proxy(self, target: str) -> web.Response:
        """Return the answer of Serve's proxy to a path with a query."""
        path = urlsplit(target).path
        served = [application for application in self._applications() if not _failure(application)]
        routes = {route: _name(application) for application in served if (route := _route(application))}
        if path == "/-/healthz":
            return (
                _response(200, "success") if self._had_routes else _response(503, "Route table is not populated yet.")
            )
        if path == "/-/routes":
            return _response(200, json.dumps(routes, separators=(",", ":")), "application/json")
        fitting = [route for route in routes if f"{path}/".startswith(f"{route.rstrip('/')}/")]
        if not fitting:
            return _response(404, f"Path '{path}' not found.")
        name = routes[max(fitting, key=len)]
        self._asked[name] = time.monotonic()
        return _response(501, f"application {name} would answer this; in the lab no container runs")

    def _put(self, body: bytes) -> web.Response:
        try:
            config = json.loads(body)
        except ValueError as error:
            return _response(500, f"json.decoder.JSONDecodeError: {error}")
        refused = list(refusals(config))
        if refused:
            return _response(400, f"{len(refused)} validation errors for ServeDeploySchema\n" + "\n".join(refused))
        self._config = config
        self._had_routes |= any(_route(entry) and not _failure(entry) for entry in config["applications"])
        return _response(200)

    def _applications(self) -> Sequence[Mapping[str, Any]]:
        return (self._config or {}).get("applications") or []

    def _details(self, nodes: Sequence[RayNode]) -> tuple[dict[str, Any], Load]:
        rooms = [Room(node.uid, Counter(node.resources)) for node in nodes if node.ready]
        total: Counter[str] = sum((room.free for room in rooms), Counter())
        load = Load(rooms)
        found = {_name(entry): self._application(entry, load, total) for entry in self._applications()}
        details: dict[str, Any] = {"controller_info": {}, "proxies": {}, "applications": found, "target_capacity": None}
        return details | ({"proxy_location": "EveryNode"} if self.runs else {}), load

    def _application(self, config: Mapping[str, Any], load: Load, total: Counter[str]) -> dict[str, Any]:
        failure, name = _failure(config), _name(config)
        deployments = {
            entry["name"]: _deployment(entry, name, self._replicas(entry, name), load, total)
            for entry in ([] if failure else config.get("deployments") or [])
        }
        # A deployment that scales is healthy with its first replicas.
        runs = not failure and all(deployment["status"] != "UPDATING" for deployment in deployments.values())
        return {
            "name": name,
            "route_prefix": None if failure else _route(config),
            "docs_path": None,
            "status": "RUNNING" if runs else "DEPLOY_FAILED" if failure else "DEPLOYING",
            "message": NOT_RUN if runs else failure,
            "last_deployed_time_s": 0.0,
            "deployed_app_config": config,
            "source": "declarative",
            "deployments": deployments,
        }

    def _replicas(self, config: Mapping[str, Any], application: str) -> tuple[int, int]:
        """Return a deployment's first replicas and its target, at least 1 after a request."""
        first = _first_replicas(config)
        delay = float((config.get("autoscaling_config") or {}).get("downscale_delay_s", _DOWNSCALE_SECONDS))
        asked = self._asked.get(application)
        awake = asked is not None and time.monotonic() - asked < delay
        return first, max(first, 1) if awake else first


def refusals(config: Any) -> Iterator[str]:
    """Yield errors for which Ray refuses a configuration; it accepts unknown keys."""
    applications = config.get("applications") if isinstance(config, dict) else None
    if not isinstance(applications, list):
        yield "applications\n  Field required"
        return
    names, prefixes = (Counter(map(key, applications)) for key in (_name, _route))
    yield from (f'applications\n  Found multiple configs for application "{name}"' for name in names if names[name] > 1)
    for prefix in prefixes:
        if prefix is not None and prefixes[prefix] > 1:
            yield f'applications\n  Found duplicate applications for route prefix "{prefix}"'
    for index, application in enumerate(applications):
        where = f"applications.{index}"
        path = application.get("import_path")
        if path is None:
            yield f"{where}.import_path\n  Field required"
        elif not any(mark in str(path) for mark in ":."):
            yield f'{where}.import_path\n  Got invalid import path "{path}"'
        runtime_env = application.get("runtime_env") or {}
        for uri in [runtime_env.get("working_dir"), *(runtime_env.get("py_modules") or [])]:
            if uri is not None and "://" not in str(uri):
                yield f"{where}.runtime_env\n  Expected URI but received path {uri}"
        for number, deployment in enumerate(application.get("deployments") or []):
            yield from (f"{where}.deployments.{number}{text}" for text in _refused(deployment))


def _refused(deployment: Mapping[str, Any]) -> Iterator[str]:
    replicas = deployment.get("num_replicas")
    if isinstance(replicas, int) and replicas < 1:
        yield ".num_replicas\n  Input should be greater than 0"
    if replicas not in (None, "auto") and deployment.get("autoscaling_config"):
        yield "\n  Manually setting num_replicas is not allowed when autoscaling_config is provided."


def _failure(application: Mapping[str, Any]) -> str:
    """Return why an accepted application fails, as far as its configuration shows."""
    for deployment in application.get("deployments") or []:
        scaling = deployment.get("autoscaling_config") or {}
        least, most = scaling.get("min_replicas", 1), scaling.get("max_replicas", 1)
        if least > most:
            return f"max_replicas ({most}) must be greater than or equal to min_replicas ({least})!"
    return ""


def _deployment(
    config: Mapping[str, Any], application: str, replicas: tuple[int, int], load: Load, total: Counter[str]
) -> dict[str, Any]:
    (first, target), needs = replicas, _needs(config)
    missing = sum(not load.place(needs) for _ in range(target))
    message = (
        f"Deployment '{config['name']}' in application '{application}' has {missing} replicas that have taken more "
        "than 30s to be scheduled. This may be due to waiting for the cluster to auto-scale or for a runtime "
        f"environment to be installed. Resources required for each replica: {json.dumps(needs)}, total resources "
        f"available: {json.dumps(dict(total))}. Use `ray status` for more details."
    )
    scales = missing and target > first
    return {
        "name": config["name"],
        "status": "UPSCALING" if scales else "UPDATING" if missing else "HEALTHY",
        "status_trigger": "AUTOSCALING" if scales else f"CONFIG_UPDATE_{'STARTED' if missing else 'COMPLETED'}",
        "message": message if missing else "",
        "target_num_replicas": target,
        "required_resources": needs,
        "replicas": [],
    }


def _first_replicas(config: Mapping[str, Any]) -> int:
    """Return the replicas that Ray starts with: those of the configuration, one by default."""
    scaling = config.get("autoscaling_config")
    if scaling:
        first = scaling.get("initial_replicas")
        return int(scaling.get("min_replicas", 1) if first is None else first)
    replicas = config.get("num_replicas")
    return replicas if isinstance(replicas, int) else 1


def _needs(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the resources of one replica; empty where only the code names them."""
    options = config.get("ray_actor_options")
    if options is None:
        return {}
    needs = {"CPU": options.get("num_cpus", 1), "GPU": options.get("num_gpus"), **(options.get("resources") or {})}
    return {name: amount for name, amount in needs.items() if amount is not None and (amount or name == "CPU")}


def _response(status: int, text: str = "", content_type: str = "text/plain") -> web.Response:
    return web.Response(status=status, text=text, content_type=content_type)


def _name(application: Mapping[str, Any]) -> str:
    return str(application.get("name", "default"))


def _route(application: Mapping[str, Any]) -> str | None:
    prefix = application.get("route_prefix", "/")
    return None if prefix is None else str(prefix)
