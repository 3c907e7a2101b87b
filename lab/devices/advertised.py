"""Extended resources on a node: from what a device plugin advertises to what the kubelet shows of it.

Answers to (read): https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager/manager.go (a resource that is no
    longer advertised is shown as 0, and then removed)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = "nvidia.com/gpu"

# Whole GPUs, MIG instances, and either of them shared: what NVIDIA's plugin and GKE's may advertise.
_MANAGED = re.compile(r"nvidia\.com/(gpu|mig-[0-9a-z.+-]+?)(\.shared)?")


def managed(resource: str) -> bool:
    """Whether a resource is a GPU plugin's to set and to take away."""
    return _MANAGED.fullmatch(resource) is not None


def status_change(
    wanted: Mapping[str, int], capacity: Mapping[str, str], allocatable: Mapping[str, str]
) -> dict[str, dict[str, str | None]]:
    """A merge patch of a node's status, the next step to what is wanted; empty when it is there.

    What is no longer advertised is shown as 0 first, as the kubelet does, and goes away with the step after that.
    """
    change: dict[str, dict[str, str | None]] = {}
    for part, now in (("capacity", capacity), ("allocatable", allocatable)):
        for name, count in wanted.items():
            if now.get(name) != str(count):
                change.setdefault(part, {})[name] = str(count)
        for name, count_now in now.items():
            if managed(name) and name not in wanted:
                change.setdefault(part, {})[name] = None if str(count_now) == "0" else "0"
    return change
