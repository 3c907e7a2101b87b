"""Ray's nodes as their simulated pods tell of them: what `ray start` counts on each.

Answers to (real): KubeRay, which writes the command into each pod; only the command's flags are read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HEAD_RESOURCE = "node:__internal_head__"
"""The resource that Ray itself gives to a head, one of it (ray 2.60.0, python/ray/_private/resource_spec.py)."""

_FLAG = re.compile(r"--(num-cpus|num-gpus|resources)=('[^']*'|\S+)")
_COUNTED = {"num-cpus": "CPU", "num-gpus": "GPU"}


@dataclass(frozen=True)
class RayNode:
    """A node of Ray.

    Attributes:
        uid: its pod's uid.
        name: its pod's name.
        cluster: namespace and name of its RayCluster.
        address: its pod's IP address.
        head: it is the head.
        ready: its pod is ready.
        resources: what Ray counts on it.
    """

    uid: str
    name: str
    cluster: tuple[str, str]
    address: str
    head: bool
    ready: bool
    resources: Mapping[str, float] = field(default_factory=dict)


def ray_node(pod: Mapping[str, Any]) -> RayNode | None:
    """A pod as a node of Ray; None for a pod that is none, or that has no address."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = metadata.get("labels") or {}
    kind, name = labels.get("ray.io/node-type"), labels.get("ray.io/cluster")
    if kind not in ("head", "worker") or not name or not status.get("podIP"):
        return None
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
    gone = "deletionTimestamp" in metadata or status.get("phase") in ("Succeeded", "Failed")
    return RayNode(
        uid=metadata["uid"],
        name=metadata["name"],
        cluster=(metadata["namespace"], name),
        address=status["podIP"],
        head=kind == "head",
        ready=conditions.get("Ready") == "True" and not gone,
        resources=_counted(pod["spec"]["containers"][0]) | ({HEAD_RESOURCE: 1.0} if kind == "head" else {}),
    )


def _counted(container: Mapping[str, Any]) -> dict[str, float]:
    """Resources that the flags of `ray start` in a container's command name."""
    return counted(" ".join(_words(container)))


def counted(command: str) -> dict[str, float]:
    """Resources that the flags of a `ray start` name."""
    found: dict[str, float] = {}
    for flag, text in _FLAG.findall(command):
        if flag in _COUNTED:
            found[_COUNTED[flag]] = float(text)
        else:
            found |= {name: float(amount) for name, amount in json.loads(text.strip("'")).items()}
    return found


def _words(container: Mapping[str, Any]) -> Sequence[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]
