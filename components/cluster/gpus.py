"""GPUs that pods ask for: counted as resources, or claimed by ResourceClaims."""

from berth.components.cluster.api import Object
from berth.components.hardware.names import CLAIMED_GPUS


def gpus_of_pod(pod: Object) -> int:
    """Return the number of GPUs, shares or MIG instances of a pod or template."""
    containers = (pod.get("spec") or {}).get("containers") or []
    counted = sum(gpus_in((container.get("resources") or {}).get("limits") or {}) for container in containers)
    return counted + claimed_gpus_of(pod)


def claimed_gpus_of(pod: Object) -> int:
    """Return the number of GPUs that a pod or pod template gets through ResourceClaims."""
    return int(((pod.get("metadata") or {}).get("annotations") or {}).get(CLAIMED_GPUS, 0))


def gpus_in(resources: Object) -> int:
    """Return the number of GPUs, shares or MIG instances among resources."""
    return sum(int(count) for name, count in resources.items() if name.startswith("nvidia.com/"))
