"""What is wrong with, and what is to be known of, GPUs in containers inside Ray's pods."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.ray.settings import RayClusterSettings
from berth.components.sharing import Pools


def nested_problems(cluster: RayClusterSettings, pools: Pools, path: Path) -> Iterable[Problem]:
    """NVIDIA's container runtime is asked for where nobody installs it."""
    pool = pools[cluster.worker.pool]
    if cluster.nested_containers == "nvidia-runtime" and cluster.worker.gpus and not pool.settings.by_operator:
        yield Problem(
            (*path, "nestedContainers"),
            f"pool {pool.name!r} is not served by the GPU Operator, so its nodes have no RuntimeClass nvidia and the API server would"
            " refuse the workers' pods; use `nestedContainers: cdi-per-pod`, or `gpuManagement: operator` for the pool",
        )


def nested_warning(cluster: RayClusterSettings, _pools: Pools, path: Path) -> Problem | None:
    """What the pods of a cluster may do more than others, for podman in them."""
    if cluster.nested_containers != "cdi-per-pod":
        return None
    return Problem(
        (*path, "nestedContainers"),
        "podman in its pods needs system calls that seccomp and AppArmor profiles forbid, so they run without either, though not"
        " privileged and without any capability; their namespace admits pods of level privileged (docs/nested-containers.md)",
    )
