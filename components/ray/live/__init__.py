"""Live RayClusters, RayJobs and RayServices: their conditions, reasons, waits, and the fleet.

Belongs here: what is read from a cluster, and suspending a RayCluster. Does not belong here:
settings and manifests (`berth.components.ray`). Code outside of ray imports from this module.
"""

from berth.components.ray.live.cluster_condition import condition_of
from berth.components.ray.live.fleet import (
    Fleet,
    LiveJob,
    LivePool,
    LiveRayCluster,
    LiveService,
    MissingOwner,
)
from berth.components.ray.live.fleet_observation import live_groups, live_restarts, observed_fleet
from berth.components.ray.live.goals import Awaited, AwaitedKind
from berth.components.ray.live.live_objects import SCALING, LiveObjects
from berth.components.ray.live.nodes import Node
from berth.components.ray.live.readiness import ReadinessWait
from berth.components.ray.live.reasons import reasons_of
from berth.components.ray.live.restarts import Restart
from berth.components.ray.live.suspension import set_suspended, wait_for_pods

__all__ = [
    "SCALING",
    "Awaited",
    "AwaitedKind",
    "Fleet",
    "LiveJob",
    "LiveObjects",
    "LivePool",
    "LiveRayCluster",
    "LiveService",
    "MissingOwner",
    "Node",
    "ReadinessWait",
    "Restart",
    "condition_of",
    "live_groups",
    "live_restarts",
    "observed_fleet",
    "reasons_of",
    "set_suspended",
    "wait_for_pods",
]
