"""Effects of a change of a RayCluster, a RayJob or a RayService.

KubeRay recreates all pods for a change of any field in its hash, if the RayCluster has
`upgradeStrategy: Recreate` (kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
GenerateHashWithoutReplicasAndWorkersToDelete).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from berth.components.cluster.demand import replicas_of
from berth.components.core import fast_yaml
from berth.components.core.owner import OWNER_LABELS, OwnerKind
from berth.components.core.words import are, counted
from berth.components.plan.effect import Effect, Level, Sitting, sitting_whole
from berth.components.plan.fleet import Occupant, PlannedFleet, occupant_of
from berth.components.plan.paths import below
from berth.components.plan.plan import Step
from berth.components.ray.workload import RAY_CLUSTER_CONFIG

_NUMBERS = ("replicas", "minReplicas", "maxReplicas", "scaleStrategy")
_COUNTS = tuple(f"spec.workerGroupSpecs.{key}" for key in _NUMBERS)
_POD_LEFT_OUT = ("tolerations", "schedulingGates")
_LEFT_OUT = (
    "metadata",
    "spec.upgradeStrategy",
    "spec.suspend",
    *(
        f"spec.{group}.template.spec.{key}"
        for group in ("headGroupSpec", "workerGroupSpecs")
        for key in _POD_LEFT_OUT
    ),
)

_WORDS: Mapping[str, Mapping[str, Any]] = fast_yaml.beside(__file__)


def of_ray_cluster(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayCluster."""
    occupant = _known(occupant_of(step.before), fleet)
    sitting = [sitting_whole(fleet, occupant)]
    who = f"{occupant.kind} {occupant.name}"
    spec = step.after.get("spec") or {}
    if step.operation in ("delete", "replace"):
        return _effects("RayCluster", step.operation, sitting, who=who)
    if spec.get("suspend") and not (step.before.get("spec") or {}).get("suspend"):
        return _effects("RayCluster", "suspend", sitting, who=who)
    recreates = any(
        below(changed.path, "spec")
        and not any(below(changed.path, prefix) for prefix in (*_COUNTS, *_LEFT_OUT))
        for changed in step.properties
    )
    if recreates and (spec.get("upgradeStrategy") or {}).get("type") == "Recreate":
        if not sitting[0].pods:
            return _effects("RayCluster", "no pods", (), who=who)
        since, less = _since(step)
        return _effects("RayCluster", "restart", sitting, who=who, since=since, less=less)
    later = _effects("RayCluster", "later", (), who=who) if recreates else []
    return [*_fewer_workers(who, occupant, step, fleet), *later]


def of_ray_job(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayJob.

    A plan does not tell whether a job still runs; in a live fleet, a job whose own RayCluster is
    gone has ended.
    """
    name, own = _owner(step, "job"), _made_for(step, fleet)
    if step.operation == "update":
        return _effects("job", "update", (), name=name)
    ended = fleet.asked and not own and "rayClusterSpec" in (step.before.get("spec") or {})
    return _effects("job", f"{step.operation} ended" if ended else step.operation, own, name=name)


def of_ray_service(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a RayService."""
    name, own = _owner(step, "service"), _made_for(step, fleet)
    what: str = step.operation
    if what == "update":
        # A new configuration of Ray Serve goes to the second RayCluster alone (kuberay v1.6.2,
        # rayservice_controller.go, Reconcile).
        paths = {"new cluster": RAY_CLUSTER_CONFIG, "new applications": "spec.serveConfigV2"}
        what = next((words for words, path in paths.items() if _changes(step, path)), "")
    return _effects("service", what, own, name=name)


def _effects(kind: str, what: str, sitting: Sequence[Sitting], **names: str) -> list[Effect]:
    """Return the effect that effects.yaml has for an event of a kind; none for another event."""
    found = _WORDS[kind].get(what, {})
    return [Effect(Level[level], text.format(**names), sitting) for level, text in found.items()]


def _changes(step: Step, *prefixes: str) -> bool:
    """Return whether a step changes a property at or below one of some paths."""
    return any(below(changed.path, prefix) for changed in step.properties for prefix in prefixes)


def _owner(step: Step, kind: OwnerKind) -> str:
    metadata = step.before.get("metadata") or {}
    return str(
        (metadata.get("labels") or {}).get(OWNER_LABELS[kind]) or metadata.get("name") or step.name
    )


def _made_for(step: Step, fleet: PlannedFleet) -> list[Sitting]:
    """Return the RayClusters of a RayJob or a RayService, if the fleet is live."""
    metadata = step.before.get("metadata") or {}
    return [
        sitting_whole(fleet, occupant)
        for occupant in fleet.occupants
        if occupant.namespace == metadata.get("namespace") and occupant.kind in ("job", "service")
    ]


def _known(occupant: Occupant, fleet: PlannedFleet) -> Occupant:
    """Return the occupant as it runs now, if the fleet is live."""
    return next((live for live in fleet.occupants if live.key == occupant.key), occupant)


def _since(step: Step) -> tuple[str, str]:
    """Return why a RayCluster of several groups restarts, and which edit would restart less.

    Both are empty for a RayCluster whose only group stays, and for an edit of all groups.
    """
    old, new = _groups(step.before), _groups(step.after)
    if len(old.keys() | new.keys()) == 1:
        return "", ""
    both = sorted(old.keys() & new.keys())
    changed = [name for name in both if _hashed(old[name]) != _hashed(new[name])]
    verbs = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": changed if len(changed) < len(both) else [],
    }
    reasons = [
        f"worker {_named(names)} {are(len(names))} {verb}" for verb, names in verbs.items() if names
    ]
    if _changes(step, "spec.enableInTreeAutoscaling"):
        reasons.append("Ray's autoscaler comes or goes")
    if not reasons:
        return "", ""
    return f", since {' and '.join(reasons)}", (
        str(_WORDS["less"]["removed"]) if verbs["removed"] else ""
    )


def _named(names: Sequence[str]) -> str:
    return f"{'group' if len(names) == 1 else 'groups'} {' and '.join(names)}"


def _groups(inputs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        str(group.get("groupName")): group
        for group in (inputs.get("spec") or {}).get("workerGroupSpecs") or []
    }


def _hashed(group: Mapping[str, Any]) -> dict[str, Any]:
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
    autoscaled = bool((step.after.get("spec") or {}).get("enableInTreeAutoscaling"))
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


def _most(group: Mapping[str, Any], *, autoscaled: bool) -> int:
    """Return the workers of a group afterward: as requested, or the autoscaler's maximum."""
    if not autoscaled:
        return replicas_of(group)
    return int(group.get("maxReplicas") or 0) * int(group.get("numOfHosts") or 1)
