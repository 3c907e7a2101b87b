"""GPUs that pods and RayClusters ask for, counted or claimed. Pure."""

from berth.components.cluster.api import Object
from berth.components.cluster.object_fields import annotations_of
from berth.components.cluster.ray_manifest import head_group, replicas_of, worker_groups
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
    return int(annotations_of(pod).get(CLAIMED_GPUS, 0))


def gpus_in(resources: Object) -> int:
    """Return the number of GPUs, shares or MIG instances among resources."""
    return sum(int(count) for name, count in resources.items() if name.startswith("nvidia.com/"))


def gpus_of_ray_cluster(ray_cluster: Object) -> int:
    """Return the number of GPUs or shares that head and desired workers of a RayCluster request."""
    gpus = gpus_of_pod(head_group(ray_cluster).get("template") or {})
    for group in worker_groups(ray_cluster):
        gpus += replicas_of(group) * gpus_of_pod(group["template"])
    return gpus
