"""Effects of a change, by the type of its resource: by a function, or by the table effects.yaml."""

from collections.abc import Callable, Mapping
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.types import parse_quantity
from berth.components.gke.effects.cluster import gke_cluster_effects
from berth.components.gke.effects.node_pool import node_pool_effects
from berth.components.operators import of_daemon_set, of_release
from berth.components.plan.effect import Effect, Level, sitting_on
from berth.components.plan.fleet import (
    GKE_CLUSTER,
    NODE_POOL,
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    PlannedFleet,
)
from berth.components.plan.paths import value_at
from berth.components.plan.plan import Step
from berth.components.ray.effects import of_ray_cluster, of_ray_job, of_ray_service
from berth.components.sharing import effects_of_node_labels

_TEXTS: dict[str, Any] = fast_yaml.load_beside(__file__, "effects.yaml")
_HOLDS_NOTHING: set[str] = set(_TEXTS["holds_nothing"])
_DISTURBS_WHEN_GONE: dict[str, str] = _TEXTS["disturbs_when_gone"]
_DESTROYS_WHEN_GONE: dict[str, str] = _TEXTS["destroys_when_gone"]
_DISTURBS_IN_PLACE: dict[str, str] = _TEXTS["disturbs_in_place"]
_HARMLESS_IN_PLACE = (
    _HOLDS_NOTHING | _DISTURBS_WHEN_GONE.keys() | _DESTROYS_WHEN_GONE.keys()
) - _DISTURBS_IN_PLACE.keys()


def _called(step: Step) -> str:
    """Return a resource's name in the cluster or in Google Cloud; else Pulumi's."""
    metadata = step.before.get("metadata") or {}
    name = str(metadata.get("name") or step.before.get("name") or step.name)
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def _of_other(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a type without a function of its own."""
    retained = step.old is not None and step.old.retained
    if step.operation == "delete" and retained:
        return [
            Effect(
                Level.HARMLESS,
                f"{_called(step)} stays, with what is in it, and no stack has it any more",
            )
        ]
    if step.operation == "update":
        if step.type in _HARMLESS_IN_PLACE:
            return []
        text = _DISTURBS_IN_PLACE.get(
            step.type, "changes in place; berth does not know the effect on what runs"
        )
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}")]
    if step.type in _HOLDS_NOTHING:
        return []
    meanwhile = " meanwhile" if step.operation == "replace" else ""
    if text := _DISTURBS_WHEN_GONE.get(step.type, ""):
        return [Effect(Level.DISTURBS, f"{_called(step)}: {text}{meanwhile}")]
    network = step.type.startswith("gcp:compute/") and step.type in _DESTROYS_WHEN_GONE
    sitting = sitting_on(fleet, fleet.everywhere) if network else []
    text = _DESTROYS_WHEN_GONE.get(
        step.type, "berth does not know what it holds, and assumes the worst"
    )
    return [Effect(Level.DESTROYS, f"{_called(step)}: {text}", sitting)]


def _of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect]:
    effects = of_daemon_set(step, fleet)
    return _of_other(step, fleet) if effects is None else effects


def _of_claim(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a claim on a disk.

    The engine calls a change of a retained claim a replacement. It keeps the claim, and the server
    grows the disk in place, or refuses the change.
    """
    if step.operation == "delete":
        return _of_other(step, fleet)
    before, after = step.before.get("spec") or {}, step.after.get("spec") or {}
    sizes = [
        parse_quantity(str(value_at(spec, "resources.requests.storage")))
        for spec in (before, after)
    ]
    if sizes != sorted(sizes):
        refused = "Kubernetes refuses a smaller disk, and the update would fail"
    elif before.get("storageClassName") != after.get("storageClassName"):
        refused = (
            "Kubernetes refuses another StorageClass for a disk that exists, and the update would"
            " fail"
        )
    else:
        retained = step.old is not None and step.old.retained
        return [] if step.operation == "update" or retained else _of_other(step, fleet)
    return [Effect(Level.DISTURBS, f"{_called(step)}: {refused}")]


_TABLES: Mapping[str, Callable[[Step, PlannedFleet], list[Effect]]] = {
    NODE_POOL: lambda step, fleet: [
        *node_pool_effects(step, fleet),
        *effects_of_node_labels(step, fleet),
    ],
    GKE_CLUSTER: gke_cluster_effects,
    RAY_CLUSTER: of_ray_cluster,
    RAY_JOB: of_ray_job,
    RAY_SERVICE: of_ray_service,
    "kubernetes:core/v1:PersistentVolumeClaim": _of_claim,
    "kubernetes:helm.sh/v3:Release": of_release,
    "kubernetes:apps/v1:DaemonSet": _of_daemon_set,
}


def effects_of(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change on what runs."""
    if step.operation == "create":
        return []
    return _TABLES.get(step.type, _of_other)(step, fleet)
