"""Which table a change is looked up in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from berth.components.gke.effects.cluster import of_gke_cluster
from berth.components.gke.effects.node_pool import of_node_pool
from berth.components.operators import of_daemon_set, of_release
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, PlannedFleet
from berth.components.plan.plan import Step
from berth.components.ray.effects import of_ray_cluster, of_ray_job, of_ray_service
from berth.components.sharing import of_node_labels
from berth.stacks.preview.others import of_other


def _of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect]:
    effects = of_daemon_set(step, fleet)
    return of_other(step, fleet) if effects is None else effects


_TABLES: Mapping[str, Callable[[Step, PlannedFleet], list[Effect]]] = {
    NODE_POOL: lambda step, fleet: [*of_node_pool(step, fleet), *of_node_labels(step, fleet)],
    GKE_CLUSTER: of_gke_cluster,
    RAY_CLUSTER: of_ray_cluster,
    RAY_JOB: of_ray_job,
    RAY_SERVICE: of_ray_service,
    "kubernetes:helm.sh/v3:Release": of_release,
    "kubernetes:apps/v1:DaemonSet": _of_daemon_set,
}

_OPERATIONS = {"create", "import", "update", "replace", "import-replacement", "delete"}
_PARTS_OF_ONE = {"delete-replaced", "create-replacement"}


def effects_of(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """What a change does to what runs."""
    if step.engine_operation not in _OPERATIONS | _PARTS_OF_ONE:
        return [Effect(Level.DESTROYS, f"the engine says {step.engine_operation!r}, which berth does not know")]
    if step.operation == "create":
        return []
    return _TABLES.get(step.type, of_other)(step, fleet)
