"""Machines that a plan takes from reservations. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.gke.provider_fields import NODE_POOL
from berth.components.plan.plan import Step

_RESERVATION = re.compile(r"projects/(?P<project>[^/]+)/(?P<below>reservations/.+)")


@dataclass(frozen=True)
class ReservedGrowth:
    """Machines of one reservation, or of a part of it, that a plan takes beyond those in use."""

    path: str
    """Path in the Compute Engine API of the reservation, of its block or of the block's sub-block:
    `projects/P/zones/Z/reservations/R/…`."""
    machine_type: str
    more: int
    pools: Sequence[str]


def reserved_growth(steps: Iterable[Step]) -> list[ReservedGrowth]:
    """Return the machines that the steps of a plan take from reservations.

    A deleted pool gives nothing back, since the engine deletes it after it has created others. The
    spare nodes with which GKE recreates others are not counted.
    """
    more: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for step in steps:
        if step.type != NODE_POOL or not _changes_size(step):
            continue
        has = _in_use(step)
        machine_type = str((step.after.get("nodeConfig") or {}).get("machineType") or "")
        for path, nodes in _nodes_by_path(_with_old_zones(step), step.after).items():
            if nodes > has.get(path, 0):
                more[path, machine_type][step.name] = nodes - has.get(path, 0)
    return [
        ReservedGrowth(path, machine_type, sum(pools.values()), tuple(pools))
        for (path, machine_type), pools in more.items()
    ]


def _changes_size(step: Step) -> bool:
    """Return whether the update itself may ask for machines; afterward GKE's autoscaler does."""
    if step.operation == "update":
        return not step.after.get("autoscaling")
    return step.operation in ("create", "replace")


def _with_old_zones(step: Step) -> Mapping[str, Any]:
    """Return the inputs with the zones that an update leaves: its new number holds there first."""
    if step.operation != "update":
        return step.after
    zones = [*(step.before.get("nodeLocations") or ()), *(step.after.get("nodeLocations") or ())]
    return {**step.after, "nodeLocations": list(dict.fromkeys(zones))}


def _in_use(step: Step) -> dict[str, int]:
    """Return the machines that a pool has, and keeps or gives back before it takes others."""
    if step.old is None or (step.operation == "replace" and not step.deleted_first):
        return {}
    # A pool that was resized by hand has what the last refresh found.
    return _nodes_by_path(step.before, {**step.before, **step.old.outputs})


def _nodes_by_path(inputs: Mapping[str, Any], size: Mapping[str, Any]) -> dict[str, int]:
    """Return the nodes of a pool by the path of what they are reserved in.

    Args:
        inputs: inputs of the pool; empty for a pool that is deleted.
        size: properties that have the number of nodes in each zone, `nodeCount`, or of a pool that
            GKE's autoscaler resizes, `initialNodeCount`.
    """
    affinity = (inputs.get("nodeConfig") or {}).get("reservationAffinity") or {}
    nodes = size.get("nodeCount", size.get("initialNodeCount"))
    if affinity.get("consumeReservationType") != "SPECIFIC_RESERVATION" or not nodes:
        return {}
    by_path = {}
    for value in affinity.get("values") or ():
        if match := _RESERVATION.fullmatch(str(value)):
            for zone in inputs.get("nodeLocations") or ():
                by_path[f"projects/{match['project']}/zones/{zone}/{match['below']}"] = int(nodes)
    return by_path
