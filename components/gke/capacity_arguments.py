"""Arguments of `gcp.container.NodePool` for capacity: origin of machines, size, repair, upgrade.

Names and values: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations
(reservations), https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training
(flex-start), and GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.components.core.bounds import Bounds
from berth.components.core.types import parse_duration
from berth.components.gke.arguments import NodePoolArguments
from berth.components.gke.pool_settings import Capacity, PoolSettings

if TYPE_CHECKING:
    import pulumi_gcp as gcp

RESERVATION_KEY = "compute.googleapis.com/reservation-name"

FLEX_START_LONGEST = "7d"
"""Longest time for which flex-start gives machines
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws)."""

_NO_RESERVATION: gcp.container.NodePoolNodeConfigReservationAffinityArgsDict = {
    "consume_reservation_type": "NO_RESERVATION"
}


def machine_arguments(capacity: Capacity, project: str) -> gcp.container.NodePoolNodeConfigArgsDict:
    """Return the node config's arguments for the origin of machines; none on demand."""
    match capacity.kind:
        case "reservation":
            path = f"projects/{capacity.project or project}/reservations/{capacity.reservation}"
            if capacity.block:
                path = f"{path}/reservationBlocks/{capacity.block}"
            return {
                "reservation_affinity": {
                    "consume_reservation_type": "SPECIFIC_RESERVATION",
                    "key": RESERVATION_KEY,
                    "values": [path],
                }
            }
        case "flex-start":
            seconds = parse_duration(capacity.max_run_duration or FLEX_START_LONGEST)
            return {"flex_start": True, "max_run_duration": f"{seconds}s", "reservation_affinity": _NO_RESERVATION}
        case "spot":
            return {"spot": True, "reservation_affinity": _NO_RESERVATION}
        case "on-demand":
            return {}


def size_arguments(settings: PoolSettings, zones: int) -> NodePoolArguments:
    """Return the number of nodes, or the autoscaler's bounds.

    GKE counts fixed and initial sizes for each zone, and bounds for all zones together.
    """
    capacity, zones = settings.capacity, max(1, zones)
    if not isinstance(settings.nodes, Bounds):
        return {"node_count": settings.nodes // zones}
    bounds = settings.nodes
    # A pool below its minimum stays there until a pod needs a node, so it begins with that many.
    initial = -(-bounds.min // zones)
    if initial * zones > bounds.max:
        initial = bounds.min // zones
    return {
        "initial_node_count": 0 if capacity.kind == "flex-start" else initial,
        "autoscaling": {
            "total_min_node_count": bounds.min,
            "total_max_node_count": bounds.max,
            # Where machines are short: any zone that has them, and reservations first. Else all
            # zones alike
            # (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler#location-policy).
            "location_policy": "BALANCED" if capacity.kind == "on-demand" else "ANY",
        },
    }


def upkeep_arguments(settings: PoolSettings) -> NodePoolArguments:
    """Return how GKE repairs and upgrades nodes."""
    flex_start = settings.capacity.kind == "flex-start"
    repair = not flex_start if settings.auto_repair is None else settings.auto_repair
    # A release channel upgrades nodes too: without auto_upgrade GKE refuses the pool.
    arguments: NodePoolArguments = {"management": {"auto_repair": repair, "auto_upgrade": True}}
    if flex_start:
        # GKE's own strategy for short-lived machines (SHORT_LIVED), for which the provider has no
        # value.
        return arguments
    arguments["upgrade_settings"] = {
        "strategy": "SURGE",
        "max_surge": settings.max_surge,
        "max_unavailable": settings.max_unavailable,
    }
    return arguments
