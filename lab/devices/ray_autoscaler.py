"""Ray's autoscaler of simulated Ray clusters: workers for the replicas of Ray Serve that wait.

It writes what Ray's does: `replicas` of a worker group, and the names of workers to delete. Tasks
and actors are not simulated, so that nothing else asks for workers here.

Answers to (read): Ray 2.60.0,
    python/ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py and
    python/ray/autoscaler/_private/kuberay/node_provider.py: the patches;
    python/ray/autoscaler/v2/scheduler.py: idle workers go after the timeout, and never below the
    minimum; workers above a group's maximum go at once; nodes with GPUs come last for what needs
    none
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from berth.components.cluster.api import JSON_PATCH, RAY_CLUSTERS, Object, within
from berth.components.cluster.scheduling import amounts
from berth.components.cluster.worker_groups import replicas_of
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
        idle = {
            group["groupName"]: clock.longer_than(float(group.get("idleTimeoutSeconds", timeout))) for group in groups
        }
        if change := operations(groups, workers, load, idle):
            self._api.patch(path, change, JSON_PATCH)
            _log.info("RayCluster %s/%s: %s", namespace, name, change)


def operations(
    groups: Sequence[Object], workers: Sequence[RayNode], load: Load, idle: Mapping[str, set[str]]
) -> list[Object]:
    """Return the JSON patch of a RayCluster's groups of workers.

    Args:
        groups: the groups.
        workers: their pods with an address.
        load: what replicas of Ray Serve ask.
        idle: names of nodes that have been idle for long enough, by the group's name.
    """
    planned = [
        _Planned(group, [worker for worker in workers if worker.group == group["groupName"]]) for group in groups
    ]
    for needs in load.waiting:
        if not any(room.place(needs) for group in planned for room in group.rooms):
            # Workers without GPUs come first for what needs none.
            fitting = sorted(planned, key=lambda group: bool(group.resources.get("GPU")) and not needs.get("GPU"))
            next((group for group in fitting if group.add(needs)), None)
    changes = []
    for number, group in enumerate(planned):
        found = group.changes(idle.get(group.name, set()), waiting=bool(load.waiting))
        changes += [
            {"op": "replace", "path": f"/spec/workerGroupSpecs/{number}/{key}", "value": value}
            for key, value in found.items()
        ]
    return changes


class _Planned:
    """A group of workers, and the workers that it should get.

    Args:
        group: the group.
        workers: its pods with an address.
    """

    def __init__(self, group: Object, workers: Sequence[RayNode]) -> None:
        self.name = group["groupName"]
        self.resources = _of_a_worker(group)
        self._group, self._names = group, {worker.name for worker in workers}
        self._replicas = replicas_of(group)
        self._most = int(group.get("maxReplicas", self._replicas))
        self._ready = [worker for worker in workers if worker.ready]
        # Workers that were asked for and are not there yet have room, too.
        self.rooms = [Room("", Counter(self.resources)) for _ in range(max(0, self._replicas - len(self._ready)))]

    def add(self, needs: Mapping[str, float]) -> bool:
        """Plan one worker more for what needs resources; return whether it helps and may come."""
        more = Room("", Counter(self.resources))
        if len(self._ready) + len(self.rooms) >= self._most or not more.place(needs):
            return False
        self.rooms.append(more)
        return True

    def changes(self, idle: set[str], *, waiting: bool) -> Object:
        """Return the fields of the group to write."""
        target = min(len(self._ready) + len(self.rooms), self._most)
        if target > self._replicas:
            return {"replicas": target}
        deleting = (self._group.get("scaleStrategy") or {}).get("workersToDelete") or []
        staying = sorted(worker.name for worker in self._ready if worker.name not in deleting)
        staying.sort(key=lambda name: name not in idle)
        left, least = self._replicas, int(self._group.get("minReplicas", 0))
        # Workers above the maximum go at once, idle ones first.
        going = staying[: max(0, len(staying) - self._most)]
        if not going and not waiting:
            going = [name for name in staying if name in idle][: max(0, left - least)]
            left -= len(going)
        if going:
            return {"replicas": left, "scaleStrategy": {"workersToDelete": [*deleting, *going]}}
        gone = deleting and not self._names & set(deleting)
        return {"scaleStrategy": {"workersToDelete": []}} if gone else {}


def _of_a_worker(group: Mapping[str, Any]) -> dict[str, float]:
    """Resources that Ray counts on a worker, as KubeRay derives them from flags and limits."""
    limits = amounts((group["template"]["spec"]["containers"][0].get("resources") or {}).get("limits"))
    gpus = sum(float(amount) for name, amount in limits.items() if name.endswith("gpu"))
    flags = " ".join(f"--{name}={value}" for name, value in (group.get("rayStartParams") or {}).items())
    return {"CPU": float(limits.get("cpu", 0)), "GPU": gpus} | counted(flags)
