"""Demand of RayClusters: the pods of their groups, and GPUs of pods, counted or claimed."""

from collections.abc import Mapping
from typing import Any

from berth.components.cluster.api import Object
from berth.components.hardware.names import CLAIMED_GPUS


def gpus_of_pod(pod: Object) -> int:
    """Return the number of GPUs, shares or MIG instances of a pod or template."""
    containers = (pod.get("spec") or {}).get("containers") or []
    counted = sum(
        gpus_in((container.get("resources") or {}).get("limits") or {}) for container in containers
    )
    return counted + claimed_gpus_of(pod)


def claimed_gpus_of(pod: Object) -> int:
    """Return the number of GPUs that a pod or pod template gets through ResourceClaims."""
    return int(((pod.get("metadata") or {}).get("annotations") or {}).get(CLAIMED_GPUS, 0))


def gpus_in(resources: Object) -> int:
    """Return the number of GPUs, shares or MIG instances among resources."""
    return sum(int(count) for name, count in resources.items() if name.startswith("nvidia.com/"))


def replicas_of(group: Mapping[str, Any]) -> int:
    """Return the number of workers that a group should have now: as set, and never below its least.

    Source: kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
    GetWorkerGroupDesiredReplicas. Workers above the maximum run on until Ray's autoscaler ends
    them.
    """
    replicas = max(int(group.get("replicas") or 0), int(group.get("minReplicas") or 0))
    return replicas * int(group.get("numOfHosts") or 1)


def gpus_of_ray_cluster(cluster: Object) -> int:
    """Return the number of GPUs or shares that head and desired workers of a RayCluster request."""
    spec = cluster["spec"]
    head = (spec.get("headGroupSpec") or {}).get("template") or {}
    workers = sum(
        replicas_of(group) * gpus_of_pod(group["template"])
        for group in spec.get("workerGroupSpecs") or []
    )
    return gpus_of_pod(head) + workers
