"""Ray's autoscaler of simulated Ray clusters: workers for the replicas of Ray Serve that wait.

It writes what Ray's does: `replicas` of a worker group, and the names of workers to delete. Tasks
and actors are not simulated, so that nothing else asks for workers here.

Answers to (read): Ray 2.60.0,
    python/ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py and
    python/ray/autoscaler/_private/kuberay/node_provider.py: the patches;
    python/ray/autoscaler/v2/scheduler.py: idle workers go after the timeout, and never below the
    minimum
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from berth.components.cluster.api import JSON_PATCH, RAY_CLUSTERS, Object, within
from berth.components.cluster.scheduling import amounts
from berth.lab.devices.api import Api
from berth.lab.devices.autoscaler import IdleClock
from berth.lab.devices.ray_pods import RayNode, counted
from berth.lab.devices.ray_serve import Load, Room

_IDLE_SECONDS = 60.0

_log = logging.getLogger("berth.lab.devices.ray")


class RayAutoscaler:
    """Ray's autoscalers of one lab.

    Args:
        api: the lab's API server.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._idle: defaultdict[tuple[str, str], IdleClock] = defaultdict(IdleClock)

    def step(self, cluster: tuple[str, str], nodes: Sequence[RayNode], load: Load) -> None:
        """Look at the RayCluster of a namespace and name, and write the workers that it needs."""
        namespace, name = cluster
        path = f"{within(namespace, RAY_CLUSTERS)}/{name}"
        found = self._api.get(path)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        groups = found["spec"].get("workerGroupSpecs") or []
        if not found["spec"].get("enableInTreeAutoscaling") or not groups:
            return
        used = {room.uid for room in load.rooms if room.used}
        clock = self._idle[cluster]
        clock.update(node.name for node in nodes if node.ready and node.uid not in used)
        timeout = (found["spec"].get("autoscalerOptions") or {}).get("idleTimeoutSeconds", _IDLE_SECONDS)
        workers = [node for node in nodes if not node.head]
        if change := operations(groups[0], workers, load, clock.longer_than(float(timeout))):
            self._api.patch(path, change, JSON_PATCH)
            _log.info("RayCluster %s/%s: %s", namespace, name, change)


def operations(group: Object, workers: Sequence[RayNode], load: Load, idle: set[str]) -> list[Object]:
    """Return the JSON patch of a RayCluster's first group of workers; berth's clusters have one.

    Workers are its pods with an address, `idle` the names of nodes that have been idle long enough.
    """
    replicas, least = int(group.get("replicas", 0)), int(group.get("minReplicas", 0))
    ready = [worker for worker in workers if worker.ready]
    # Workers that were asked for and are not there yet have room, too.
    rooms = [Room("", Counter(_of_a_worker(group))) for _ in range(max(0, replicas - len(ready)))]
    for needs in load.waiting:
        more = Room("", Counter(_of_a_worker(group)))
        if not any(room.place(needs) for room in rooms) and more.place(needs):
            rooms.append(more)
    target = min(len(ready) + len(rooms), int(group.get("maxReplicas", replicas)))
    if target > replicas:
        return [_replace("replicas", target)]
    deleting = (group.get("scaleStrategy") or {}).get("workersToDelete") or []
    going = sorted(worker.name for worker in ready if worker.name in idle and worker.name not in deleting)
    going = going[: max(0, replicas - least)] if not load.waiting else []
    if going:
        strategy = {"workersToDelete": [*deleting, *going]}
        return [_replace("replicas", replicas - len(going)), _replace("scaleStrategy", strategy)]
    gone = deleting and not {worker.name for worker in workers} & set(deleting)
    return [_replace("scaleStrategy", {"workersToDelete": []})] if gone else []


def _replace(key: str, value: Any) -> Object:
    return {"op": "replace", "path": f"/spec/workerGroupSpecs/0/{key}", "value": value}


def _of_a_worker(group: Mapping[str, Any]) -> dict[str, float]:
    """Resources that Ray counts on a worker, as KubeRay derives them from flags and limits."""
    limits = amounts((group["template"]["spec"]["containers"][0].get("resources") or {}).get("limits"))
    gpus = sum(float(amount) for name, amount in limits.items() if name.endswith("gpu"))
    flags = " ".join(f"--{name}={value}" for name, value in (group.get("rayStartParams") or {}).items())
    return {"CPU": float(limits.get("cpu", 0)), "GPU": gpus} | counted(flags)
