"""What a change of a RayCluster does.

KubeRay makes all pods anew for a change of anything but what its hash leaves out, if the RayCluster says `upgradeStrategy:
Recreate` (kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go, GenerateHashWithoutReplicasAndWorkersToDelete).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.preview.effects.effect import Effect, Level, counted, sitting_whole
from cli.preview.fleet import Fleet, Occupant, occupant_of
from cli.preview.paths import below
from cli.preview.plan import Step

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


def of_ray_cluster(step: Step, fleet: Fleet) -> list[Effect]:
    """The effects of a change of a RayCluster."""
    if step.old is None:
        return []
    occupant = _known(occupant_of(step.old.inputs), fleet)
    sitting = [sitting_whole(fleet, occupant)]
    who = f"{occupant.kind} {occupant.name}"
    if step.operation == "delete":
        return [Effect(Level.DESTROYS, f"{who} goes, with what runs in it", sitting)]
    if step.operation == "replace" or step.new is None:
        return [Effect(Level.DESTROYS, f"{who} is deleted and made anew: what runs in it is lost", sitting)]
    spec = step.new.inputs.get("spec") or {}
    if spec.get("suspend") and not (step.old.inputs.get("spec") or {}).get("suspend"):
        return [Effect(Level.DESTROYS, f"{who} is suspended: its pods go, and what runs in them is lost", sitting)]
    anew = [
        each.path
        for each in step.properties
        if below(each.path, "spec") and not any(below(each.path, prefix) for prefix in (*_COUNTS, *_LEFT_OUT))
    ]
    if anew and (spec.get("upgradeStrategy") or {}).get("type") == "Recreate":
        if not sitting[0].pods:
            return [Effect(Level.HARMLESS, f"{who} has no pods that the change could reach")]
        text = f"{who} restarts: KubeRay makes all its pods anew, and what runs in them is lost"
        return [Effect(Level.DESTROYS, text, sitting)]
    effects = _fewer_workers(who, occupant, step, fleet)
    if anew:
        effects.append(Effect(Level.HARMLESS, f"{who}: only pods that are made later are other ones"))
    return effects


def _known(occupant: Occupant, fleet: Fleet) -> Occupant:
    """As the cluster has it now, where it was asked."""
    same = (each for each in fleet.occupants if each.namespace == occupant.namespace)
    return next((each for each in same if each.ray_cluster == occupant.ray_cluster), occupant)


def _fewer_workers(who: str, occupant: Occupant, step: Step, fleet: Fleet) -> list[Effect]:
    if step.new is None or not any(below(each.path, prefix) for each in step.properties for prefix in _COUNTS):
        return []
    now = sum(usage.pods for usage in occupant.on.values()) - 1
    spec = step.new.inputs.get("spec") or {}
    groups = spec.get("workerGroupSpecs") or []
    wanted = sum(_most(group, autoscaled=bool(spec.get("enableInTreeAutoscaling"))) for group in groups)
    if wanted >= now:
        return []
    text = f"{who}: {counted(now, 'worker')} become {wanted}; Ray runs the tasks and actors of those that go again elsewhere"
    return [Effect(Level.DISTURBS, text, [sitting_whole(fleet, occupant)])]


def _most(group: Mapping[str, Any], *, autoscaled: bool) -> int:
    """Workers of a group afterwards: as many as are asked for, or as Ray's autoscaler may keep."""
    return int(group.get("maxReplicas" if autoscaled else "replicas") or 0) * int(group.get("numOfHosts") or 1)
