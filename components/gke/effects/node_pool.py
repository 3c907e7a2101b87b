"""Effects of a change of a node pool. Many changes look like edits, and recreate every node.

Which changes recreate nodes is a fact about each field of Google's provider
(components/gke/provider_fields); the engine says which ones replace the pool. How GKE recreates
nodes: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from berth.components.core.words import counted
from berth.components.gke.effects.pool_size import other_size
from berth.components.gke.provider_fields import NODE_POOL, resource_fields, values_left_out
from berth.components.plan.effect import (
    Effect,
    GpusAway,
    Level,
    gpus_away,
    sitting_on,
    where_somebody_works,
)
from berth.components.plan.fleet import PlannedFleet, PlannedPool, Span
from berth.components.plan.paths import below
from berth.components.plan.plan import Property, Step

RECREATING_FIELDS = {
    "nodeConfig.machineType": "the machine type",
    "nodeConfig.diskType": "the type of the boot disk",
    "nodeConfig.diskSizeGb": "the size of the boot disk",
    "nodeConfig.bootDisk": "the boot disk",
    "nodeConfig.storagePools": "the storage pool of the boot disk",
    "nodeConfig.imageType": "the node image",
    "nodeConfig.linuxNodeConfig": "kernel settings",
    "nodeConfig.kubeletConfig": "the kubelet's settings",
    "nodeConfig.containerdConfig": "containerd's settings",
    "nodeConfig.gvnic": "gVNIC",
    "nodeConfig.gcfsConfig": "image streaming",
    "nodeConfig.fastSocket": "NCCL Fast Socket",
    "nodeConfig.loggingVariant": "the logging agent",
    "nodeConfig.workloadMetadataConfig": "the metadata server (Workload Identity)",
    "nodeConfig.confidentialNodes": "confidential nodes",
    "version": "the nodes' version",
}
"""Fields whose change recreates the nodes, in words."""

UNNOTICED_FIELDS = ("nodeConfig.resourceLabels", "nodeConfig.resourceManagerTags")
"""Fields that nothing that runs notices, of which the provider's source says nothing: Compute
Engine sets the labels and tags of running machines
(https://docs.cloud.google.com/compute/docs/labeling-resources)."""

_SENT_TOGETHER = ("machineType", "diskType", "diskSizeGb", "bootDisk", "storagePools")
"""Fields of `nodeConfig` that the provider sends in one request (nodePoolNodeConfigUpdate in
node_config.go). It sends every other one by itself, and waits until GKE has recreated the nodes."""


def node_pool_effects(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of a change of a node pool."""
    name = str(step.before.get("name", step.name))
    before = fleet.before.get(name)
    after = fleet.after.get(name)
    if before is None:
        return []
    if step.operation in ("replace", "delete"):
        return [_gone(before, after, step, fleet)]
    if after is None:
        return []
    return [
        *_recreated_nodes(before, after, _sent(step), fleet),
        *other_size(before, after, step.properties, fleet),
        *_new_taints(before, after, _effective_taints(step), fleet),
    ]


def _gone(pool: PlannedPool, after: PlannedPool | None, step: Step, fleet: PlannedFleet) -> Effect:
    """Return the effect of a replaced or deleted pool, whose capacity may not come back."""
    if step.operation == "delete":
        text = f"pool {pool.name}: all its nodes are deleted"
    elif step.deleted_first:
        text = (
            f"pool {pool.name}: all its nodes are deleted, then new ones are created, if there is"
            " capacity for them"
        )
    else:
        text = (
            f"pool {pool.name}: new nodes are created, if there is capacity for them, then all old"
            " ones are deleted"
        )
    if (pool.settings.get("networkConfig") or {}).get("acceleratorNetworkProfile"):
        # github.com/llm-d/llm-d/pull/2379: such pools "never finish deleting".
        text += (
            "; GKE may never finish that, since the pool has `rdma: managed`: the update would"
            " wait for two hours, and fail"
        )
    back = step.operation == "replace" and after is not None and after.product == pool.product
    return Effect(
        Level.DESTROYS, text, sitting_on(fleet, [pool.name]), gpus_away(pool, pool.nodes, back=back)
    )


def _recreated_nodes(
    before: PlannedPool, after: PlannedPool, properties: Sequence[Property], fleet: PlannedFleet
) -> list[Effect]:
    """GKE recreates every node, by the pool's upgrade settings."""
    answers = {changed.path: _recreates(changed.path) for changed in properties}
    paths = [path for path, answer in answers.items() if answer != "no"]
    if not paths or before.nodes.max == 0:
        return []
    what = " and ".join(dict.fromkeys(map(_in_words, paths)))
    is_known = "yes" in answers.values()
    guess = "" if is_known else " (berth does not know whether it does, and assumes the worst)"
    rounds = len({_request(path) for path, answer in answers.items() if answer == "yes"})
    times = f" {rounds} times in a row" if rounds > 1 else ""
    sitting = sitting_on(fleet, [before.name])
    text = (
        f"pool {before.name}: for a change of {what} GKE recreates every node{times}{guess},"
        f" {_pace(before)}, and evicts the pods on it"
    )
    level = where_somebody_works(fleet, sitting)
    return [Effect(level, text, sitting, _gpus_meanwhile(before, after))]


def _request(path: str) -> str:
    """Return what stands for the request in which the provider sends a field."""
    below_config = path.removeprefix("nodeConfig.")
    name = re.split(r"[.\[]", below_config)[0]
    return _SENT_TOGETHER[0] if name in _SENT_TOGETHER else name


def _in_words(path: str) -> str:
    """Return a field in words; another path as it is."""
    return next((word for field, word in RECREATING_FIELDS.items() if below(path, field)), path)


def _sent(step: Step) -> list[Property]:
    """Return the properties that change, without those whose values stay, whatever is asked for."""
    stay = [
        path for path, _ in values_left_out(step.before, step.after, resource_fields()[NODE_POOL])
    ]
    return [changed for changed in step.properties if not _is_below_any(changed.path, stay)]


def _is_below_any(path: str, prefixes: Iterable[str]) -> bool:
    return any(below(path, prefix) for prefix in prefixes)


def _recreates(path: str) -> Literal["no", "yes", "unknown"]:
    if _is_below_any(path, UNNOTICED_FIELDS):
        return "no"
    fact = resource_fields()[NODE_POOL].field_at(path)
    return "unknown" if fact is None or fact.replaces else fact.nodes


def _upgrade_pace(pool: PlannedPool) -> tuple[int, int]:
    """Return nodes beyond the pool's size, and nodes away, while GKE recreates nodes (1 and 0)."""
    settings = pool.settings.get("upgradeSettings") or {}
    surge = settings.get("maxSurge")
    away = settings.get("maxUnavailable")
    if surge is None and away is None:
        return 1, 0
    return int(surge or 0), int(away or 0)


def _pace(pool: PlannedPool) -> str:
    """Return how fast GKE recreates a pool's nodes.

    Other upgrade settings hold only afterward: the provider sends them last (nodePoolUpdate in
    resource_container_node_pool.go).
    """
    if (pool.settings.get("upgradeSettings") or {}).get("strategy") == "BLUE_GREEN":
        return "all of them beside the old ones (blue-green)"
    surge, away = _upgrade_pace(pool)
    at_once = max(1, min(surge + away, pool.nodes[1]))
    spare = f"with {counted(surge, 'spare node')}" if surge else "without spare ones"
    return f"{at_once} at a time {spare}"


def _gpus_meanwhile(before: PlannedPool, after: PlannedPool) -> list[GpusAway]:
    fewer = before.gpus_per_node - after.gpus_per_node
    if fewer > 0:
        count = Span(before.nodes[0] * fewer, before.nodes[1] * fewer)
        return [GpusAway(before.name, before.product, count, back=False)]
    away = min(_upgrade_pace(before)[1], before.nodes[1])
    return gpus_away(before, (away, away), back=True)


def _new_taints(
    before: PlannedPool,
    after: PlannedPool,
    effective: Sequence[Mapping[str, Any]],
    fleet: PlannedFleet,
) -> list[Effect]:
    """Return the effects of new taints: NoExecute ends pods, others only keep new ones away.

    Args:
        before: the pool before.
        after: the pool afterward.
        effective: taints that the nodes have, whoever asked for them.
        fleet: fleet that the plan changes.
    """
    old = [*_taints_of(before), *effective]
    evicting: list[str] = []
    others: list[str] = []
    for taint in _taints_of(after):
        if taint not in old:
            keys = evicting if taint.get("effect") == "NO_EXECUTE" else others
            keys.append(taint["key"])
    effects = []
    if evicting:
        text = (
            f"pool {before.name}: taint {', '.join(evicting)} (NoExecute) ends the pods that do not"
            " tolerate it"
        )
        sitting = sitting_on(fleet, [before.name])
        effects.append(Effect(where_somebody_works(fleet, sitting), text, sitting))
    if others:
        text = (
            f"pool {before.name}: taint {', '.join(others)} keeps new pods that do not tolerate it"
            " off the nodes; what runs there stays"
        )
        effects.append(Effect(Level.HARMLESS, text))
    return effects


def _effective_taints(step: Step) -> Sequence[Mapping[str, Any]]:
    """Return the taints of the nodes of a pool, those of an imported one and of GKE included."""
    outputs = step.old.outputs if step.old else {}
    return (outputs.get("nodeConfig") or {}).get("effectiveTaints") or ()


def _taints_of(pool: PlannedPool) -> list[dict[str, Any]]:
    return (pool.settings.get("nodeConfig") or {}).get("taints") or []
