"""Condition of a RayService, and the problems of its applications. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import condition_in, is_seen, is_true


@dataclass(frozen=True)
class ServiceCondition:
    """Condition of a RayService."""

    ready: bool
    """The newest edit serves: all applications run, pods answer, and no upgrade is in progress."""
    seen: bool
    """The operator has seen the newest edit."""
    serving: int
    """Number of pods that answer requests."""
    running: int
    applications: int
    upgrading: bool
    """A second cluster is starting."""
    ray_clusters: tuple[str, ...]
    """The serving RayCluster, and the one that starts."""
    reasons: tuple[str, ...]
    """Problems of applications, by Ray, or of the RayService, by KubeRay."""

    @property
    def state(self) -> str:
        """State in a word: `ready`, `upgrading`, `serving` (some applications), `starting`."""
        if self.ready:
            return "ready"
        if not self.serving:
            return "starting"
        return "upgrading" if self.upgrading or not self.seen else "serving"

    def __str__(self) -> str:
        if not self.seen:
            return "waiting for the KubeRay operator"
        text = f"{self.running}/{self.applications} applications run"
        if self.serves_by_old_one:
            old, new = self.ray_clusters
            return f"{old} serves with {self.serving} pods, and its successor {new} waits: {text}"
        return f"{text}, {self.serving} pods serve"

    @property
    def serves_by_old_one(self) -> bool:
        """Whether the old RayCluster serves while its successor starts."""
        return self.upgrading and self.serving > 0 and len(self.ray_clusters) > 1


def service_condition(service: Object) -> ServiceCondition:
    """Return the condition that a RayService's status describes."""
    status = service.get("status") or {}
    states = _states_of_applications(service)
    running = sum(state.get("status") == "RUNNING" for state in states.values())
    seen = is_seen(service)
    upgrading = is_true(service, "UpgradeInProgress")
    all_serve = is_true(service, "Ready") and running == len(states)
    return ServiceCondition(
        ready=seen and all_serve and not upgrading,
        seen=seen,
        serving=int(status.get("numServeEndpoints") or 0),
        running=running,
        applications=len(states),
        upgrading=upgrading,
        ray_clusters=_ray_clusters(status),
        reasons=(*_problems_by_kuberay(service), *_problems_by_ray(states)),
    )


def _ray_clusters(status: Object) -> tuple[str, ...]:
    """Return the RayClusters of a RayService, the serving one before the one that starts."""
    both = [status.get("activeServiceStatus") or {}, status.get("pendingServiceStatus") or {}]
    return tuple(str(one["rayClusterName"]) for one in both if one.get("rayClusterName"))


def _states_of_applications(service: Object) -> dict[str, Object]:
    """Return Ray's states of the configured applications; an empty one where Ray has none yet."""
    status = service.get("status") or {}
    # During an upgrade KubeRay polls only the new cluster.
    polled = status.get("pendingServiceStatus") or {}
    if not polled.get("rayClusterName"):
        polled = status.get("activeServiceStatus") or {}
    states = polled.get("applicationStatuses") or {}
    config = yaml.safe_load(service["spec"].get("serveConfigV2") or "") or {}
    names = [str(entry.get("name", "default")) for entry in config.get("applications") or []]
    return {name: states.get(name) or {} for name in names}


def _problems_by_kuberay(service: Object) -> Iterable[str]:
    ready = condition_in(service, "Ready")
    if ready.get("reason") in ("ValidationFailed", "InitializingTimeout"):
        yield str(ready.get("message"))


def _problems_by_ray(states: Mapping[str, Object]) -> Iterable[str]:
    for name, state in states.items():
        if state.get("status") in (None, "", "RUNNING"):
            continue
        message = f": {_last_line(state['message'])}" if state.get("message") else ""
        yield f"application {name}: {state['status']}{message}"
        for deployment, part in (state.get("serveDeploymentStatuses") or {}).items():
            if part.get("status") != "HEALTHY" and part.get("message"):
                yield (
                    f"deployment {deployment} of it: {part.get('status')}:"
                    f" {_last_line(part['message'])}"
                )


def _last_line(text: str) -> str:
    """Return the last line of a text, which is the error of a Python traceback."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""
