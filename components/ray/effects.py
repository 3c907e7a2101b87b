"""Effects of a change of a RayCluster, a RayJob or a RayService.

KubeRay recreates all pods for a change of any field in its hash, if the RayCluster has
`upgradeStrategy: Recreate` (kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
GenerateHashWithoutReplicasAndWorkersToDelete).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from berth.components.cluster.object_fields import labels_of
from berth.components.cluster.ray_manifest import (
    RayGroup,
    is_recreated,
    is_suspended,
    replicas_of,
    spec_of,
    worker_groups,
)
from berth.components.core.owner import OWNER_LABELS, OwnerKind
from berth.components.core.words import counted, is_or_are
from berth.components.plan.effect import Effect, Level, Sitting, sitting_whole
from berth.components.plan.fleet import RAY_CLUSTER, RAY_JOB, RAY_SERVICE, PlannedFleet
from berth.components.plan.occupants import Occupant, occupant_of
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.ray.services import RAY_CLUSTER_CONFIG

_NUMBERS = ("replicas", "minReplicas", "maxReplicas", "scaleStrategy")
_COUNTS = tuple(f"spec.workerGroupSpecs.{key}" for key in _NUMBERS)
_POD_LEFT_OUT = ("tolerations", "schedulingGates")
_NOT_HASHED = (
    *_COUNTS,
    "spec.upgradeStrategy",
    "spec.suspend",
    *(f"spec.headGroupSpec.template.spec.{key}" for key in _POD_LEFT_OUT),
    *(f"spec.workerGroupSpecs.template.spec.{key}" for key in _POD_LEFT_OUT),
)
"""Paths of a RayCluster that are not in KubeRay's hash, beside what is outside of its spec."""


def _of_ray_cluster(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayCluster."""
    occupant = _as_it_runs(occupant_of(step.before), fleet)
    sitting = [sitting_whole(fleet, occupant)]
    who = f"{occupant.kind} {occupant.name}"
    if step.operation == "delete":
        text = f"{who} is deleted, with everything that runs in it"
        return [Effect(Level.DESTROYS, text, sitting)]
    if step.operation == "replace":
        text = f"{who} is deleted and recreated: what runs in it is lost"
        return [Effect(Level.DESTROYS, text, sitting)]
    if is_suspended(step.after) and not is_suspended(step.before):
        text = f"{who} is suspended: its pods are deleted, and what runs in them is lost"
        return [Effect(Level.DESTROYS, text, sitting)]
    if not _changes_pods(step):
        return _fewer_workers(who, occupant, step, fleet)
    if not is_recreated(step.after):
        later = f"{who}: only pods that are created later change"
        return [*_fewer_workers(who, occupant, step, fleet), Effect(Level.HARMLESS, later)]
    if not sitting[0].pods:
        return [Effect(Level.HARMLESS, f"{who} has no pods that the change could reach")]
    return [Effect(Level.DESTROYS, _restart(who, step), sitting)]


def _of_ray_job(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayJob.

    A plan does not tell whether a job still runs; in a live fleet, a job whose own RayCluster is
    gone has ended.
    """
    job = f"job {_owner(step, 'job')}"
    if step.operation == "update":
        text = f"{job} does not run again: only its submitter changes"
        return [Effect(Level.HARMLESS, text)]
    sitting = _made_for(step, fleet)
    has_own_cluster = "rayClusterSpec" in (step.before.get("spec") or {})
    ended = fleet.asked and has_own_cluster and not sitting
    level = Level.HARMLESS if ended else Level.DESTROYS
    if step.operation == "delete":
        then = "; it has ended" if ended else "; if it still runs, its work is lost"
        return [Effect(level, f"{job} is deleted{then}", sitting)]
    if step.operation == "replace":
        then = "; it has ended" if ended else "; work of the previous run is lost"
        text = f"{job} runs again, as a new RayJob, since its content changed{then}"
        return [Effect(level, text, sitting)]
    return []


def _of_ray_service(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayService.

    A new configuration of Ray Serve goes to the second RayCluster alone (kuberay v1.6.2,
    rayservice_controller.go, Reconcile).
    """
    service = f"service {_owner(step, 'service')}"
    sitting = _made_for(step, fleet)
    if step.operation == "delete":
        text = f"{service} is deleted, and no longer answers requests"
        return [Effect(Level.DESTROYS, text, sitting)]
    if step.operation == "replace":
        text = (
            f"{service} is deleted and recreated (upgradeStrategy: Recreate): it answers no"
            " requests meanwhile"
        )
        return [Effect(Level.DESTROYS, text, sitting)]
    if _changes(step, RAY_CLUSTER_CONFIG):
        text = (
            f"{service}: KubeRay creates a second RayCluster, moves the Service to it when it"
            " serves, and removes the first one"
        )
        return [Effect(Level.HARMLESS, text, sitting)]
    if _changes(step, "spec.serveConfigV2"):
        text = (
            f"{service}: Ray Serve takes the new configuration in place; deployments that it"
            " changes restart"
        )
        return [Effect(Level.DISTURBS, text, sitting)]
    return []


RAY_EFFECTS: Mapping[str, Callable[[Step, PlannedFleet], list[Effect]]] = {
    RAY_CLUSTER: _of_ray_cluster,
    RAY_JOB: _of_ray_job,
    RAY_SERVICE: _of_ray_service,
}
"""Functions that return the effects of a change, by the type of the changed resource."""


def _changes_pods(step: Step) -> bool:
    """Return whether a step changes a part of a RayCluster that is in KubeRay's hash."""
    return any(_is_hashed(changed.path) for changed in step.properties)


def _is_hashed(path: str) -> bool:
    return below(path, "spec") and not _is_below_any(path, _NOT_HASHED)


def _is_below_any(path: str, prefixes: Iterable[str]) -> bool:
    return any(below(path, prefix) for prefix in prefixes)


def _changes(step: Step, *prefixes: str) -> bool:
    """Return whether a step changes a property at or below one of some paths."""
    return any(_is_below_any(changed.path, prefixes) for changed in step.properties)


def _owner(step: Step, kind: OwnerKind) -> str:
    in_cluster = (step.before.get("metadata") or {}).get("name")
    return labels_of(step.before).get(OWNER_LABELS[kind]) or str(in_cluster or step.name)


def _made_for(step: Step, fleet: PlannedFleet) -> list[Sitting]:
    """Return the RayClusters of a RayJob or a RayService, if the fleet is live."""
    metadata = step.before.get("metadata") or {}
    return [
        sitting_whole(fleet, occupant)
        for occupant in fleet.occupants
        if occupant.namespace == metadata.get("namespace") and occupant.kind in ("job", "service")
    ]


def _as_it_runs(occupant: Occupant, fleet: PlannedFleet) -> Occupant:
    """Return the occupant as it runs now, if the fleet is live."""
    return next((live for live in fleet.occupants if live.key == occupant.key), occupant)


def _restart(who: str, step: Step) -> str:
    """Return the text of a restart; for one of several groups, why, and how to restart less."""
    reasons = _reasons_of_restart(step)
    since = f", since {' and '.join(reasons)}" if reasons else ""
    text = f"{who} restarts{since}: KubeRay recreates all its pods, and what runs in them is lost"
    if reasons and _removed_groups(step):
        text += (
            "; a group that stays with `workers: 0`, or with `max: 0` where it has bounds, ends"
            " its workers alone"
        )
    return text


def _reasons_of_restart(step: Step) -> list[str]:
    """Return why a RayCluster of several groups restarts.

    There are none for a RayCluster whose only group stays, and for an edit of all groups.
    """
    old = _groups(step.before)
    new = _groups(step.after)
    if len(old.keys() | new.keys()) == 1:
        return []
    both = sorted(old.keys() & new.keys())
    changed = [name for name in both if _hashed(old[name]) != _hashed(new[name])]
    verbs = {
        "added": sorted(new.keys() - old.keys()),
        "removed": _removed_groups(step),
        "changed": changed if len(changed) < len(both) else [],
    }
    reasons = [
        f"worker {_named(names)} {is_or_are(len(names))} {verb}"
        for verb, names in verbs.items()
        if names
    ]
    if _changes(step, "spec.enableInTreeAutoscaling"):
        reasons.append("Ray's autoscaler comes or goes")
    return reasons


def _removed_groups(step: Step) -> list[str]:
    return sorted(_groups(step.before).keys() - _groups(step.after).keys())


def _named(names: Sequence[str]) -> str:
    return f"{'group' if len(names) == 1 else 'groups'} {' and '.join(names)}"


def _groups(manifest: Mapping[str, Any]) -> dict[str, RayGroup]:
    """Return the groups of a RayCluster's workers by their name."""
    return {str(group.get("groupName")): group for group in worker_groups(manifest)}


def _hashed(group: RayGroup) -> dict[str, Any]:
    """Return what KubeRay's hash has of a group."""
    template = group.get("template") or {}
    pod = {
        key: value
        for key, value in (template.get("spec") or {}).items()
        if key not in _POD_LEFT_OUT
    }
    return {
        **{key: value for key, value in group.items() if key not in _NUMBERS},
        "template": {**template, "spec": pod},
    }


def _fewer_workers(who: str, occupant: Occupant, step: Step, fleet: PlannedFleet) -> list[Effect]:
    if not _changes(step, *_COUNTS):
        return []
    autoscaled = bool(spec_of(step.after).get("enableInTreeAutoscaling"))
    groups = _groups(step.after)
    effects = []
    for name, now in occupant.workers.items():
        after = _most(groups[name], autoscaled=autoscaled) if name in groups else 0
        if after >= now:
            continue
        of_group = f" of group {name}" if len(groups) > 1 else ""
        text = (
            f"{who}: {counted(now, 'worker')}{of_group} become {after}; Ray reruns the tasks and"
            " actors of the removed ones elsewhere"
        )
        effects.append(Effect(Level.DISTURBS, text, [sitting_whole(fleet, occupant)]))
    return effects


def _most(group: RayGroup, *, autoscaled: bool) -> int:
    """Return the workers of a group afterward: as requested, or the autoscaler's maximum."""
    if not autoscaled:
        return replicas_of(group)
    return int(group.get("maxReplicas") or 0) * int(group.get("numOfHosts") or 1)
