"""Effects of another number of nodes of a pool, and of other zones.

The provider sends one request after the other, whatever is asked for at once: the autoscaler, the
nodes' configuration, the number of nodes in each zone, then the zones (nodePoolUpdate in
resource_container_node_pool.go). So a pool stands for a moment with its old zones and the new
number in each of them, and what is in force only then counts too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.components.core.words import counted
from berth.components.plan.effect import (
    Effect,
    GpusAway,
    Level,
    gpus_away,
    sitting_on,
    where_somebody_works,
)
from berth.components.plan.fleet import PlannedFleet, PlannedPool, span
from berth.components.plan.paths import below
from berth.components.plan.plan import Property

SIZE_FIELDS = ("nodeCount", "autoscaling", "nodeLocations")
"""Fields that say how many nodes there are, and where."""


@dataclass(frozen=True)
class _Resize:
    """Nodes of a pool that come and go on the way to another size.

    Attributes:
        beyond: most nodes beyond the new number in each of the old zones: GKE chooses which.
        in_zones_left: nodes that remain of the old ones in zones that the pool leaves.
        moment: nodes while the old zones have the new number.
    """

    beyond: int
    in_zones_left: int
    moment: int

    @property
    def lost(self) -> int:
        """Nodes that are deleted, while others may come in their place."""
        return self.beyond + self.in_zones_left


def other_size(
    before: PlannedPool, after: PlannedPool, properties: Sequence[Property], fleet: PlannedFleet
) -> list[Effect]:
    """Return the effects of another number of nodes, and of zones that nodes leave or enter."""
    if not any(_is_of_size(changed.path) for changed in properties):
        return []
    change = _change(before, after)
    if after.autoscaled:
        return _bounds(before, after, change, fleet)
    resize = _resize(before, after)
    effects = []
    if resize.lost:
        effects.append(_deletion(before, after, resize, fleet))
    elif before.nodes != after.nodes:
        effects.append(Effect(Level.HARMLESS, change))
    most = max(before.nodes.max, after.nodes.max)
    if resize.moment > most:
        text = (
            f"pool {before.name}: for a moment it has {counted(resize.moment, 'node')}, since the"
            f" new number holds in its old zones first: where quota or a reservation has no more"
            f" than {most}, the update stops there"
        )
        effects.append(Effect(Level.HARMLESS, text))
    return effects


def _is_of_size(path: str) -> bool:
    return any(below(path, field) for field in SIZE_FIELDS)


def _change(before: PlannedPool, after: PlannedPool) -> str:
    if before.nodes == after.nodes:
        stay = "node stays" if before.nodes == (1, 1) else "nodes stay"
        return f"pool {before.name}: {span(before.nodes)} {stay} {span(after.nodes)}"
    become = "node becomes" if before.nodes == (1, 1) else "nodes become"
    return f"pool {before.name}: {span(before.nodes)} {become} {span(after.nodes)}"


def _bounds(
    before: PlannedPool, after: PlannedPool, change: str, fleet: PlannedFleet
) -> list[Effect]:
    """Return the effects of other bounds of an autoscaler, and of other zones below it."""
    fewer = max(0, before.nodes.max - after.nodes.max)
    sitting = sitting_on(fleet, [before.name])
    gpus = gpus_away(before, (max(0, before.nodes.min - after.nodes.max), fewer), back=False)
    if zones := _zones_left(before, after):
        text = f"{change}; {_deleted_with_zones(zones)}"
        all_go = fewer >= before.nodes.max
        return [Effect(where_somebody_works(fleet, sitting), text, sitting, gpus, all_go)]
    if fewer:
        # GKE's autoscaler does not enforce its bounds: kubernetes/autoscaler,
        # cluster-autoscaler/FAQ.md, "My cluster is below minimum / above maximum number of nodes,
        # but CA did not fix that! Why?"
        text = f"{change}; nodes beyond that stay until they are idle"
        return [Effect(Level.DISTURBS, text, sitting, gpus)]
    return [Effect(Level.HARMLESS, change)] if before.nodes != after.nodes else []


def _resize(before: PlannedPool, after: PlannedPool) -> _Resize:
    """Return what a fixed size does to a pool's nodes."""
    new = after.most_in_zone
    in_each = max(0, before.most_in_zone - new) * before.zones
    beyond = max(0, min(in_each, before.nodes.max - new))
    in_zones_left = min(before.most_in_zone, new) * len(_zones_left(before, after))
    return _Resize(
        beyond=beyond,
        in_zones_left=min(in_zones_left, before.nodes.max - beyond),
        moment=new * before.zones,
    )


def _deletion(
    before: PlannedPool, after: PlannedPool, resize: _Resize, fleet: PlannedFleet
) -> Effect:
    sitting = sitting_on(fleet, [before.name])
    parts = [_change(before, after)]
    if resize.beyond:
        parts.append(_deleted_by_choice(before, after, resize.beyond))
    if zones := _zones_left(before, after):
        parts.append(_deleted_with_zones(zones))
    return Effect(
        where_somebody_works(fleet, sitting),
        "; ".join(parts),
        sitting,
        _gpus_of(before, after, resize),
        all_go=resize.lost >= before.nodes.max,
    )


def _deleted_by_choice(before: PlannedPool, after: PlannedPool, count: int) -> str:
    up_to = "up to " if before.autoscaled and before.nodes.min != before.nodes.max else ""
    nodes = f"{up_to}{counted(count, 'node')}"
    new_zones = _zones_left(after, before)
    if not new_zones:
        return f"GKE deletes {nodes} of its own choice, and evicts the pods there"
    have = "has" if len(new_zones) == 1 else "have"
    return (
        f"GKE deletes {nodes} of its own choice before {_listed(new_zones)} {have} any, and evicts"
        " the pods there"
    )


def _deleted_with_zones(zones: Sequence[str]) -> str:
    return (
        f"GKE deletes the nodes in {_listed(zones)}, and evicts the pods there; a home that is a"
        " disk in a zone that the pool leaves stays there, and its head finds no node"
    )


def _listed(zones: Iterable[str]) -> str:
    return ", ".join(zones)


def _gpus_of(before: PlannedPool, after: PlannedPool, resize: _Resize) -> list[GpusAway]:
    """Return the GPUs of deleted nodes: those for good, and those that others come for."""
    fewer = max(0, before.nodes.max - after.nodes.max)
    least = max(0, before.nodes.min - after.nodes.max)
    gone = gpus_away(before, (least, fewer), back=False)
    replaced = max(0, resize.lost - fewer)
    least_replaced = 0 if before.autoscaled else replaced
    return gone + gpus_away(before, (least_replaced, replaced), back=True)


def _zones_left(before: PlannedPool, after: PlannedPool) -> list[str]:
    old = before.settings.get("nodeLocations") or []
    new = after.settings.get("nodeLocations") or []
    return sorted(set(old) - set(new)) if old and new else []
