"""Nodes of Ray, read from their simulated pods: the resources that `ray start` counts on each.

Answers to (real): KubeRay, which writes the command into each pod; only the command's flags are
    read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HEAD_RESOURCE = "node:__internal_head__"
"""Resource of which Ray gives one to a head (ray 2.60.0, python/ray/_private/resource_spec.py)."""

_FLAG = re.compile(r"--(num-cpus|num-gpus|resources)=('[^']*'|\S+)")
_COUNTED = {"num-cpus": "CPU", "num-gpus": "GPU"}


@dataclass(frozen=True)
class RayNode:
    """A node of Ray; uid, name, address and readiness are those of its pod."""

    uid: str
    name: str
    cluster: tuple[str, str]  # namespace and name of its RayCluster
    address: str
    head: bool
    ready: bool
    resources: Mapping[str, float] = field(default_factory=dict)  # counted by Ray
    group: str = ""  # group of workers that its pod belongs to


def ray_node(pod: Mapping[str, Any]) -> RayNode | None:
    """Return a pod as a node of Ray; None for another pod, or one without an address."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = metadata.get("labels") or {}
    kind, name = labels.get("ray.io/node-type"), labels.get("ray.io/cluster")
    if kind not in ("head", "worker") or not name or not status.get("podIP"):
        return None
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in status.get("conditions") or [])
    gone = "deletionTimestamp" in metadata or status.get("phase") in ("Succeeded", "Failed")
    container = pod["spec"]["containers"][0]
    command = " ".join([*(container.get("command") or []), *(container.get("args") or [])])
    return RayNode(
        uid=metadata["uid"],
        name=metadata["name"],
        cluster=(metadata["namespace"], name),
        address=status["podIP"],
        head=kind == "head",
        ready=ready and not gone,
        resources=counted(command) | ({HEAD_RESOURCE: 1.0} if kind == "head" else {}),
        group=labels.get("ray.io/group", ""),
    )


def counted(command: str) -> dict[str, float]:
    """Return the resources that the flags of a `ray start` name."""
    found: dict[str, float] = {}
    for flag, text in _FLAG.findall(command):
        if flag in _COUNTED:
            found[_COUNTED[flag]] = float(text)
        else:
            found |= {name: float(amount) for name, amount in json.loads(text.strip("'")).items()}
    return found
