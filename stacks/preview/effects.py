"""Effects of a change on what runs, by the function of its resource's type. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

from berth.components.core.types import parse_quantity
from berth.components.gke.effects.cluster import gke_cluster_effects
from berth.components.gke.effects.node_pool import node_pool_effects
from berth.components.isolation import standard_of
from berth.components.operators import daemon_set_effects, release_effects
from berth.components.plan.effect import Effect, Level
from berth.components.plan.fleet import GKE_CLUSTER, NODE_POOL, PlannedFleet
from berth.components.plan.paths import below, value_at
from berth.components.plan.plan import Step
from berth.components.ray import RAY_EFFECTS
from berth.components.sharing import effects_of_node_labels
from berth.stacks.preview.effects_by_type import NAMESPACE, effects_by_type, is_retained, name_of


def _of_daemon_set(step: Step, fleet: PlannedFleet) -> list[Effect]:
    effects = daemon_set_effects(step, fleet)
    return effects_by_type(step, fleet) if effects is None else effects


def _of_claim(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a claim on a disk.

    The engine calls a change of a retained claim a replacement. It keeps the claim, and the server
    grows the disk in place, or refuses the change.
    """
    if step.operation == "delete":
        return effects_by_type(step, fleet)
    before = step.before.get("spec") or {}
    after = step.after.get("spec") or {}
    if _size_of_claim(after) < _size_of_claim(before):
        refused = "Kubernetes refuses a smaller disk, and the update would fail"
    elif before.get("storageClassName") != after.get("storageClassName"):
        refused = (
            "Kubernetes refuses another StorageClass for a disk that exists, and the update would"
            " fail"
        )
    elif step.operation == "update" or is_retained(step):
        return []
    else:
        return effects_by_type(step, fleet)
    return [Effect(Level.DISTURBS, f"{name_of(step)}: {refused}")]


def _of_subnetwork(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a subnetwork, of another range of its pods or Services too.

    The provider sends the other ranges without it first (resource_compute_subnetwork.go).
    """
    ranges = [changed for changed in step.properties if below(changed.path, "secondaryIpRanges")]
    if step.operation != "update" or all(changed.kind == "add" for changed in ranges):
        return effects_by_type(step, fleet)
    text = (
        "the old range is taken off before the new one comes; Compute Engine refuses that while a"
        " cluster uses it, and the update fails there"
    )
    return [Effect(Level.DISTURBS, f"{name_of(step)}: {text}")]


def _of_namespace(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a namespace, of another Pod Security level too.

    The API server judges pods when they are created: those that run stay. What policy berth-pods
    holds beside the level leaves other berths as safe as before.
    """
    effects = effects_by_type(step, fleet)
    before = standard_of(step.before)
    after = standard_of(step.after)
    if step.operation == "update" and after.is_looser_than(before):
        text = (
            f"{name_of(step)}: the Pod Security level goes from {before} to {after}, which admits"
            f" {after.admits} for every pod there"
        )
        effects.append(Effect(Level.HARMLESS if after.rules else Level.DISTURBS, text))
    return effects


def _size_of_claim(spec: Mapping[str, Any]) -> Decimal:
    """Return the bytes that a claim asks for."""
    return parse_quantity(str(value_at(spec, "resources.requests.storage")))


_FUNCTIONS: Mapping[str, Callable[[Step, PlannedFleet], list[Effect]]] = {
    NODE_POOL: lambda step, fleet: [
        *node_pool_effects(step, fleet),
        *effects_of_node_labels(step, fleet),
    ],
    GKE_CLUSTER: gke_cluster_effects,
    **RAY_EFFECTS,
    "gcp:compute/subnetwork:Subnetwork": _of_subnetwork,
    NAMESPACE: _of_namespace,
    "kubernetes:core/v1:PersistentVolumeClaim": _of_claim,
    "kubernetes:helm.sh/v3:Release": release_effects,
    "kubernetes:apps/v1:DaemonSet": _of_daemon_set,
}


def effects_of(
    step: Step, fleet: PlannedFleet, deleted_namespaces: Collection[str] = ()
) -> list[Effect]:
    """Return the effects of a change on what runs.

    Args:
        step: the change.
        fleet: pools and RayClusters before and after the plan.
        deleted_namespaces: namespaces that the same plan deletes. What nobody is left to miss in
            them, such as a restriction of their pods, has no effect; a loss has.
    """
    if step.operation == "create":
        return []
    effects = _FUNCTIONS.get(step.type, effects_by_type)(step, fleet)
    metadata = step.before.get("metadata") or {}
    if step.operation == "delete" and metadata.get("namespace") in deleted_namespaces:
        return [effect for effect in effects if effect.level != Level.DISTURBS]
    return effects


def deleted_namespaces(steps: Iterable[Step]) -> frozenset[str]:
    """Return the namespaces that some changes delete, with everything in them."""
    return frozenset(
        name_of(step)
        for step in steps
        if step.type == NAMESPACE and step.operation == "delete" and not is_retained(step)
    )
