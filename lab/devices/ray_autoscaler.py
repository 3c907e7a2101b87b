"""Ray's autoscaler of a simulated Ray cluster: workers for the replicas of Ray Serve that wait, none for those that are gone.

It writes what Ray's does: `replicas` of a worker group, and the workers to delete by name. Tasks and actors are not simulated, so that nothing
else asks for workers here.

Answers to (read): Ray 2.60.0, python/ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py and
    python/ray/autoscaler/_private/kuberay/node_provider.py: the patches;
    python/ray/autoscaler/v2/scheduler.py: idle workers go after the timeout, and never below the minimum
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from berth.components.cluster.api import JSON_PATCH, RAY_CLUSTERS, ClusterApi, within
from berth.lab.devices.ray_pods import RayNode, counted
from berth.lab.devices.ray_serve import Load, Room

_IDLE_SECONDS = 60.0

_log = logging.getLogger("berth.lab.devices.ray")

Object = dict[str, Any]


class RayAutoscaler:
    """Ray's autoscalers of one lab.

    Args:
        kubeconfig: the administrator's kubeconfig of the lab.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._connected: ClusterApi | None = None
        self._idle_since: dict[str, float] = {}

    def step(self, cluster: tuple[str, str], nodes: Sequence[RayNode], demand: Load) -> None:
        """Look at one cluster once, and write what it needs.

        Args:
            cluster: namespace and name of its RayCluster.
            nodes: its nodes.
            demand: what replicas ask of them.

        Raises:
            ClusterError: the API server refuses, or does not answer.
        """
        if self._connected is None:
            self._connected = ClusterApi(self._kubeconfig.read_text())
        namespace, name = cluster
        path = f"{within(namespace, RAY_CLUSTERS)}/{name}"
        found = self._connected.get(path)
        if found is not None and (operations := self._operations(found, nodes, demand)):
            self._connected.request("PATCH", path, operations, content_type=JSON_PATCH)
            _log.info("RayCluster %s/%s: %s", *cluster, operations)

    def _operations(self, found: Object, nodes: Sequence[RayNode], demand: Load) -> list[Object]:
        groups = found["spec"].get("workerGroupSpecs") or []
        if not found["spec"].get("enableInTreeAutoscaling") or "deletionTimestamp" in found["metadata"] or not groups:
            return []
        timeout = (found["spec"].get("autoscalerOptions") or {}).get("idleTimeoutSeconds", _IDLE_SECONDS)
        idle = self._idle(nodes, demand, float(timeout))
        return operations(groups[0], [node for node in nodes if not node.head], demand, idle)

    def _idle(self, nodes: Sequence[RayNode], demand: Load, timeout: float) -> set[str]:
        """Workers that no replica has used for the timeout."""
        now = time.monotonic()
        used = {room.uid for room in demand.rooms if room.used}
        for node in nodes:
            if node.uid in used or not node.ready:
                self._idle_since.pop(node.uid, None)
            else:
                self._idle_since.setdefault(node.uid, now)
        return {node.name for node in nodes if now - self._idle_since.get(node.uid, now) >= timeout}


def operations(group: Object, workers: Sequence[RayNode], demand: Load, idle: set[str]) -> list[Object]:
    """The JSON patch of a RayCluster's first group of workers, which is the only one of berth's.

    Args:
        group: the group.
        workers: its pods that have an address.
        demand: what replicas ask.
        idle: names of workers that have had nothing to do for long enough.
    """
    replicas, least = int(group.get("replicas", 0)), int(group.get("minReplicas", 0))
    ready = [worker for worker in workers if worker.ready]
    # Workers that were asked for and are not there yet have room, too.
    rooms = [Room("", Counter(_of_a_worker(group))) for _ in range(max(0, replicas - len(ready)))]
    for needs in demand.waiting:
        more = Room("", Counter(_of_a_worker(group)))
        if not any(room.place(needs) for room in rooms) and more.place(needs):
            rooms.append(more)
    wanted = min(len(ready) + len(rooms), int(group.get("maxReplicas", replicas)))
    deleting = (group.get("scaleStrategy") or {}).get("workersToDelete") or []
    if wanted > replicas:
        return [_replace("replicas", wanted)]
    going = sorted(worker.name for worker in ready if worker.name in idle and worker.name not in deleting)
    going = going[: max(0, replicas - least)] if not demand.waiting else []
    if going:
        return [
            _replace("replicas", replicas - len(going)),
            _replace("scaleStrategy", {"workersToDelete": [*deleting, *going]}),
        ]
    gone = deleting and not {worker.name for worker in workers} & set(deleting)
    return [_replace("scaleStrategy", {"workersToDelete": []})] if gone else []


def _replace(key: str, value: Any) -> Object:
    return {"op": "replace", "path": f"/spec/workerGroupSpecs/0/{key}", "value": value}


def _of_a_worker(group: Mapping[str, Any]) -> dict[str, float]:
    """Resources that Ray will count on a group's worker, as KubeRay derives them from parameters and limits."""
    limits = group["template"]["spec"]["containers"][0].get("resources", {}).get("limits") or {}
    gpus = sum(float(amount) for name, amount in limits.items() if name.endswith("gpu"))
    given = " ".join(f"--{name}={value}" for name, value in (group.get("rayStartParams") or {}).items())
    return {"CPU": _cores(str(limits.get("cpu", 0))), "GPU": gpus} | counted(given)


def _cores(text: str) -> float:
    return float(text.removesuffix("m")) / 1000 if text.endswith("m") else float(text)
