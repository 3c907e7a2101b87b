"""Effects of a change of a node pool. Many changes look like edits, and recreate every node.

Which changes recreate nodes is a fact about each field of Google's provider
(components/gke/provider_fields); the engine says which ones replace the pool. How GKE recreates
nodes: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from berth.components.core.words import counted
from berth.components.gke.effects import WORDS_OF_FIELDS
from berth.components.gke.provider_fields import NODE_POOL, left_out, resources
from berth.components.plan.effect import (
    Effect,
    GpusAway,
    Level,
    gpus_away,
    sitting_on,
    where_somebody_works,
)
from berth.components.plan.fleet import PlannedFleet, PlannedPool, Span, span
from berth.components.plan.paths import below
from berth.components.plan.plan import Property, Step

# Fields that say how many nodes there are, and where.
SIZE = ("nodeCount", "autoscaling", "nodeLocations")

WORDS: Mapping[str, str] = WORDS_OF_FIELDS[NODE_POOL]["recreates_nodes"]
"""Words for fields whose change recreates the nodes."""


def of_node_pool(step: Step, fleet: PlannedFleet) -> list[Effect]:
    """The effects of a change of a node pool."""
    name = str(step.before.get("name", step.name))
    before, after = fleet.before.get(name), fleet.after.get(name)
    if before is None:
        return []
    if step.operation in ("replace", "delete"):
        return [_gone(before, after, step, fleet)]
    if after is None:
        return []
    return [
        *_nodes_anew(before, after, _sent(step), fleet),
        *_size(before, after, step.properties, fleet),
        *_taints(before, after, fleet),
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
    back = step.operation == "replace" and after is not None and after.product == pool.product
    return Effect(
        Level.DESTROYS, text, sitting_on(fleet, [pool.name]), gpus_away(pool, pool.nodes, back=back)
    )


def _nodes_anew(
    before: PlannedPool, after: PlannedPool, properties: Sequence[Property], fleet: PlannedFleet
) -> list[Effect]:
    """GKE recreates every node, by the pool's upgrade settings."""
    facts = {changed.path: _recreates(changed.path) for changed in properties}
    changed = [path for path, answer in facts.items() if answer != "no"]
    if not changed:
        return []
    words = [
        next((word for prefix, word in WORDS.items() if below(path, prefix)), path)
        for path in changed
    ]
    what = " and ".join(dict.fromkeys(words))
    guess = (
        " (berth does not know whether it does, and assumes the worst)"
        if "yes" not in facts.values()
        else ""
    )
    if before.nodes[1] == 0:
        return []
    sitting = sitting_on(fleet, [before.name])
    text = (
        f"pool {before.name}: for a change of {what} GKE recreates every node{guess},"
        f" {_pace(before, after)}, and evicts the pods on it"
    )
    return [
        Effect(where_somebody_works(fleet, sitting), text, sitting, _gpus_meanwhile(before, after))
    ]


def _sent(step: Step) -> list[Property]:
    """The properties that change, without those whose values stay, whatever is asked for."""
    stay = [path for path, _ in left_out(step.before, step.after, resources()[NODE_POOL])]
    return [
        changed
        for changed in step.properties
        if not any(below(changed.path, path) for path in stay)
    ]


def _recreates(path: str) -> Literal["no", "yes", "unknown"]:
    fact = resources()[NODE_POOL].at(path)
    return "unknown" if fact is None or fact.replaces else fact.nodes


def upgrade_of(pool: PlannedPool) -> tuple[int, int]:
    """Return nodes beyond the pool's size, and nodes away, while GKE recreates nodes (1 and 0)."""
    settings = pool.settings.get("upgradeSettings") or {}
    surge, away = settings.get("maxSurge"), settings.get("maxUnavailable")
    if surge is None and away is None:
        return 1, 0
    return int(surge or 0), int(away or 0)


def _pace(before: PlannedPool, after: PlannedPool) -> str:
    if (after.settings.get("upgradeSettings") or {}).get("strategy") == "BLUE_GREEN":
        return "all of them beside the old ones (blue-green)"
    surge, away = upgrade_of(after)
    at_once = max(1, min(surge + away, before.nodes[1]))
    spare = f"with {counted(surge, 'spare node')}" if surge else "without spare ones"
    return f"{at_once} at a time {spare}"


def _gpus_meanwhile(before: PlannedPool, after: PlannedPool) -> list[GpusAway]:
    fewer = before.gpus_per_node - after.gpus_per_node
    if fewer > 0:
        count = Span(before.nodes[0] * fewer, before.nodes[1] * fewer)
        return [GpusAway(before.name, before.product, count, back=False)]
    away = min(upgrade_of(after)[1], before.nodes[1])
    return gpus_away(before, (away, away), back=True)


def _size(
    before: PlannedPool, after: PlannedPool, properties: Sequence[Property], fleet: PlannedFleet
) -> list[Effect]:
    if not any(below(changed.path, prefix) for changed in properties for prefix in SIZE):
        return []
    one = before.nodes == (1, 1)
    change = f"{span(before.nodes)} {'node becomes' if one else 'nodes become'} {span(after.nodes)}"
    fewer, left = max(0, before.nodes[1] - after.nodes[1]), _zones_left(before, after)
    if not fewer and not left:
        return (
            [Effect(Level.HARMLESS, f"pool {before.name}: {change}")]
            if before.nodes != after.nodes
            else []
        )
    sitting = sitting_on(fleet, [before.name])
    gpus = gpus_away(before, (max(0, before.nodes[0] - after.nodes[1]), fewer), back=False)
    if after.autoscaled and not left:
        # GKE's autoscaler does not enforce its bounds: kubernetes/autoscaler,
        # cluster-autoscaler/FAQ.md, "My cluster is below minimum / above maximum number of nodes,
        # but CA did not fix that! Why?"
        text = f"pool {before.name}: {change}; nodes beyond that stay until they are idle"
        return [Effect(Level.DISTURBS, text, sitting, gpus)]
    which = (
        f"the nodes in {', '.join(left)}" if left else f"{counted(fewer, 'node')} of its own choice"
    )
    text = f"pool {before.name}: {change}; GKE deletes {which}, and evicts the pods there"
    if left:
        text += (
            "; a home that is a disk in a zone that the pool leaves stays there, and its head finds"
            " no node"
        )
    all_go = fewer >= before.nodes[1]
    return [Effect(where_somebody_works(fleet, sitting), text, sitting, gpus, all_go)]


def _zones_left(before: PlannedPool, after: PlannedPool) -> list[str]:
    old, new = before.settings.get("nodeLocations") or [], after.settings.get("nodeLocations") or []
    return sorted(set(old) - set(new)) if old and new else []


def _taints(before: PlannedPool, after: PlannedPool, fleet: PlannedFleet) -> list[Effect]:
    """Return the effects of new taints: NoExecute ends pods, others only keep new ones away."""
    old, new = (
        (pool.settings.get("nodeConfig") or {}).get("taints") or [] for pool in (before, after)
    )
    added = [taint for taint in new if taint not in old]
    evicting = [taint["key"] for taint in added if taint.get("effect") == "NO_EXECUTE"]
    others = [taint["key"] for taint in added if taint.get("effect") != "NO_EXECUTE"]
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
            " off the nodes"
        )
        effects.append(Effect(Level.HARMLESS, f"{text}; what runs there stays"))
    return effects
