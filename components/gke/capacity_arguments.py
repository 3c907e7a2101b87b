"""Where a node pool's machines come from and how many there are, as plain arguments of `gcp.container.NodePool`. Pure.

Names and values: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations (reservations),
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training (flex-start), and
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.components.core.bounds import Bounds
from berth.components.core.types import parse_duration
from berth.components.gke.capacity_settings import Capacity
from berth.components.gke.pool_settings import PoolSettings

RESERVATION_KEY = "compute.googleapis.com/reservation-name"

FLEX_START_LONGEST = "7d"
"""For how long flex-start gives machines at most (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws)."""


def machines_of(capacity: Capacity, project: str) -> dict[str, Any]:
    """What the node config says about where machines come from; nothing for those on demand.

    Args:
        capacity: the pool's.
        project: the environment's.
    """
    match capacity.kind:
        case "reservation":
            path = f"projects/{capacity.project or project}/reservations/{capacity.reservation}"
            if capacity.block:
                path = f"{path}/reservationBlocks/{capacity.block}"
            affinity = {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY, "values": [path]}
            return {"reservation_affinity": affinity}
        case "flex-start":
            seconds = parse_duration(capacity.max_run_duration or FLEX_START_LONGEST)
            return {"flex_start": True, "max_run_duration": f"{seconds}s", "reservation_affinity": _NO_RESERVATION}
        case "spot":
            return {"spot": True, "reservation_affinity": _NO_RESERVATION}
        case "on-demand":
            return {}


_NO_RESERVATION = {"consume_reservation_type": "NO_RESERVATION"}


def size_of(settings: PoolSettings, zones: Sequence[str]) -> dict[str, Any]:
    """Number of nodes, or the autoscaler's bounds.

    Args:
        settings: the pool's.
        zones: of its nodes; GKE counts fixed and initial sizes in each of them, and bounds in all together.
    """
    capacity, each = settings.capacity, max(1, len(zones))
    if not isinstance(settings.nodes, Bounds):
        return {"node_count": settings.nodes // each}
    bounds = settings.nodes
    # A pool below its minimum stays there until a pod needs a node, so that it has to begin with that many.
    initial = -(-bounds.min // each)
    if initial * each > bounds.max:
        initial = bounds.min // each
    return {
        "initial_node_count": 0 if capacity.kind == "flex-start" else initial,
        "autoscaling": {
            "total_min_node_count": bounds.min,
            "total_max_node_count": bounds.max,
            # Where machines are short, any zone that has them, and reservations first; else the zones alike
            # (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler#location-policy).
            "location_policy": "BALANCED" if capacity.kind == "on-demand" else "ANY",
        },
    }


def care_of(settings: PoolSettings) -> dict[str, Any]:
    """How GKE repairs and upgrades nodes.

    Args:
        settings: the pool's.
    """
    flex_start = settings.capacity.kind == "flex-start"
    repair = not flex_start if settings.auto_repair is None else settings.auto_repair
    # A release channel upgrades nodes too: without it GKE refuses the pool.
    care: dict[str, Any] = {"management": {"auto_repair": repair, "auto_upgrade": True}}
    if flex_start:
        # GKE's own strategy for machines that go anyway (SHORT_LIVED); the provider has no word for it, so none is said.
        return care
    care["upgrade_settings"] = {
        "strategy": "SURGE",
        "max_surge": settings.max_surge,
        "max_unavailable": settings.max_unavailable,
    }
    return care
