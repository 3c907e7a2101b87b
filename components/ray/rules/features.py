"""Rules of Ray's autoscaler, of waits and of nested containers, for a cluster on its pools."""

from berth.components.core.rules import Rules
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.placed import PlacedGroup
from berth.components.ray.settings import BerthShape

_MANY_WORKERS = 100

CLUSTER_FEATURES = Rules[RayClusterSettings](BerthShape)
"""Rules of a RayCluster."""

GROUP_FEATURES = Rules[PlacedGroup](BerthShape)
"""Rules of a RayCluster for each of its groups; their places begin at the RayCluster's settings."""


@GROUP_FEATURES.problem("nestedContainers")
def runtime_that_no_operator_installs(placed: PlacedGroup) -> str | None:
    """Nodes that the GPU Operator serves have RuntimeClass nvidia."""
    pool = placed.pool
    asks = placed.cluster.nested_containers == "nvidia-runtime" and placed.group.gpus
    if not asks or pool.settings.by_operator:
        return None
    return (
        f"pool {pool.name!r} is not served by the GPU Operator, so its nodes have no RuntimeClass"
        " nvidia and the API server would refuse the workers' pods; use `nestedContainers:"
        " cdi-per-pod`, or `gpuManagement: operator` for the pool"
    )


@GROUP_FEATURES.warning("wait.until")
def wait_for_machines_that_queue(placed: PlacedGroup) -> str | None:
    """Flex-start nodes come when Google has them."""
    pool = placed.pool
    wait = placed.cluster.wait
    queues = pool.settings.capacity.kind == "flex-start" and placed.group.at_start
    if not queues or wait.until != "ready":
        return None
    return (
        f"waits up to {wait.timeout} for workers on pool {pool.name!r}, whose flex-start nodes come"
        " when Google has them, maybe after hours, and the update would fail; write `wait: {until:"
        " submitted}`"
    )


@CLUSTER_FEATURES.warning("autoscaler.memory")
def small_autoscaler_of_many_workers(cluster: RayClusterSettings) -> str | None:
    """Ray's autoscaler needs more memory for more workers.

    Source: https://github.com/ray-project/ray/issues/57624.
    """
    workers = cluster.workers_at_most
    small = cluster.autoscaled and cluster.autoscaler.memory == "512Mi"
    if not small or workers <= _MANY_WORKERS:
        return None
    return (
        f"is 512Mi for up to {workers} workers; Ray's autoscaler was killed for memory where it had"
        " many (ray issue 57624), and nothing scales then; write autoscaler: {memory: 2Gi}"
    )


@CLUSTER_FEATURES.warning("nestedContainers")
def pods_without_profiles(cluster: RayClusterSettings) -> str | None:
    """Podman in a pod needs system calls that the default profiles forbid."""
    if cluster.nested_containers != "cdi-per-pod":
        return None
    return (
        "podman in its pods needs system calls that seccomp and AppArmor profiles forbid, so they"
        " run without either, though not privileged and without any capability; their namespace"
        " admits pods of level privileged (`berth docs advanced#nested-containers`)"
    )
