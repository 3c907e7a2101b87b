"""Effects of a change of a RayCluster, a RayJob or a RayService.

KubeRay recreates all pods for a change of any field in its hash, if the RayCluster has
`upgradeStrategy: Recreate` (kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
GenerateHashWithoutReplicasAndWorkersToDelete).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.components.core.owner import OWNER_LABELS, OwnerKind
from berth.components.core.words import counted
from berth.components.plan.effect import Effect, Level, Sitting, sitting_whole
from berth.components.plan.fleet import Occupant, PlannedFleet, occupant_of
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.ray.workload import RAY_CLUSTER_CONFIG

_COUNTS = tuple(f"spec.workerGroupSpecs.{key}" for key in ("replicas", "minReplicas", "maxReplicas", "scaleStrategy"))
_LEFT_OUT = (
    "metadata",
    "spec.upgradeStrategy",
    "spec.suspend",
    *(
        f"spec.{group}.template.spec.{key}"
        for group in ("headGroupSpec", "workerGroupSpecs")
        for key in ("tolerations", "schedulingGates")
    ),
)


def of_ray_cluster(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayCluster."""
    if step.old is None:
        return []
    occupant = _known(occupant_of(step.old.inputs), fleet)
    sitting = [sitting_whole(fleet, occupant)]
    who = f"{occupant.kind} {occupant.name}"
    if step.operation == "delete":
        return [Effect(Level.DESTROYS, f"{who} is deleted, with everything that runs in it", sitting)]
    if step.operation == "replace" or step.new is None:
        return [Effect(Level.DESTROYS, f"{who} is deleted and recreated: what runs in it is lost", sitting)]
    spec = step.new.inputs.get("spec") or {}
    if spec.get("suspend") and not (step.old.inputs.get("spec") or {}).get("suspend"):
        return [
            Effect(Level.DESTROYS, f"{who} is suspended: its pods are deleted, and what runs in them is lost", sitting)
        ]
    recreates = any(
        below(changed.path, "spec") and not any(below(changed.path, prefix) for prefix in (*_COUNTS, *_LEFT_OUT))
        for changed in step.properties
    )
    if recreates and (spec.get("upgradeStrategy") or {}).get("type") == "Recreate":
        if not sitting[0].pods:
            return [Effect(Level.HARMLESS, f"{who} has no pods that the change could reach")]
        text = f"{who} restarts: KubeRay recreates all its pods, and what runs in them is lost"
        return [Effect(Level.DESTROYS, text, sitting)]
    effects = _fewer_workers(who, occupant, step, fleet)
    if recreates:
        effects.append(Effect(Level.HARMLESS, f"{who}: only pods that are created later change"))
    return effects


def of_ray_job(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayJob.

    A plan does not tell whether a job still runs; in a live fleet, a job whose own RayCluster is
    gone has ended.
    """
    if step.old is None:
        return []
    name = _owner(step, "job")
    if step.operation == "update":
        return [Effect(Level.HARMLESS, f"job {name} does not run again: only its submitter changes")]
    own = _made_for(step, fleet)
    ended = fleet.asked and not own and "rayClusterSpec" in (step.old.inputs.get("spec") or {})
    level = Level.HARMLESS if ended else Level.DESTROYS
    what = "it has ended" if ended else "work of the previous run is lost"
    if step.operation == "replace":
        return [Effect(level, f"job {name} runs again, as a new RayJob, since its content changed; {what}", own)]
    what = "it has ended" if ended else "if it still runs, its work is lost"
    return [Effect(level, f"job {name} is deleted; {what}", own)]


def of_ray_service(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayService."""
    if step.old is None:
        return []
    name, own = _owner(step, "service"), _made_for(step, fleet)
    if step.operation == "delete":
        return [Effect(Level.DESTROYS, f"service {name} is deleted, and no longer answers requests", own)]
    if step.operation == "replace":
        text = f"service {name} is deleted and recreated (upgradeStrategy: Recreate): it answers no requests meanwhile"
        return [Effect(Level.DESTROYS, text, own)]
    if _changes(step, RAY_CLUSTER_CONFIG):
        # A new configuration of Ray Serve goes to the second one alone (kuberay v1.6.2,
        # rayservice_controller.go, Reconcile).
        text = (
            f"service {name}: KubeRay creates a second RayCluster, moves the Service to it when it serves, and"
            " removes the first one"
        )
        return [Effect(Level.HARMLESS, text, own)]
    if _changes(step, "spec.serveConfigV2"):
        text = f"service {name}: Ray Serve takes the new configuration in place; deployments that it changes restart"
        return [Effect(Level.DISTURBS, text, own)]
    return []


def _changes(step: Step, *prefixes: str) -> bool:
    """Return whether a step changes a property at or below one of some paths."""
    return any(below(changed.path, prefix) for changed in step.properties for prefix in prefixes)


def _owner(step: Step, kind: OwnerKind) -> str:
    metadata = (step.old.inputs.get("metadata") or {}) if step.old else {}
    return str((metadata.get("labels") or {}).get(OWNER_LABELS[kind]) or metadata.get("name") or step.name)


def _made_for(step: Step, fleet: PlannedFleet) -> list[Sitting]:
    """Return the RayClusters of a RayJob or a RayService, if the fleet is live."""
    metadata = (step.old.inputs.get("metadata") or {}) if step.old else {}
    return [
        sitting_whole(fleet, occupant)
        for occupant in fleet.occupants
        if occupant.namespace == metadata.get("namespace") and occupant.kind in ("job", "service")
    ]


def _known(occupant: Occupant, fleet: PlannedFleet) -> Occupant:
    """Return the occupant as it runs now, if the fleet is live."""
    key = (occupant.namespace, occupant.ray_cluster)
    return next((live for live in fleet.occupants if (live.namespace, live.ray_cluster) == key), occupant)


def _fewer_workers(who: str, occupant: Occupant, step: Step, fleet: PlannedFleet) -> list[Effect]:
    if step.new is None or not _changes(step, *_COUNTS):
        return []
    now = sum(usage.pods for usage in occupant.on.values()) - 1
    spec = step.new.inputs.get("spec") or {}
    groups = spec.get("workerGroupSpecs") or []
    after = sum(_most(group, autoscaled=bool(spec.get("enableInTreeAutoscaling"))) for group in groups)
    if after >= now:
        return []
    text = (
        f"{who}: {counted(now, 'worker')} become {after}; Ray reruns the tasks and actors of the removed ones elsewhere"
    )
    return [Effect(Level.DISTURBS, text, [sitting_whole(fleet, occupant)])]


def _most(group: Mapping[str, Any], *, autoscaled: bool) -> int:
    """Return the workers of a group afterward: as requested, or the autoscaler's maximum."""
    return int(group.get("maxReplicas" if autoscaled else "replicas") or 0) * int(group.get("numOfHosts") or 1)
