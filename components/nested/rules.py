"""Rules for GPUs in containers inside Ray's pods."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.nested.settings import NestedContainers
from berth.components.sharing import Pool


def nested_problems(way: NestedContainers, gpus: int, pool: Pool, path: Path) -> Iterable[Problem]:
    """Yield a problem if workers need NVIDIA's runtime and nothing installs it on their pool."""
    if way == "nvidia-runtime" and gpus and not pool.settings.by_operator:
        yield Problem(
            (*path, "nestedContainers"),
            f"pool {pool.name!r} is not served by the GPU Operator, so its nodes have no RuntimeClass nvidia and"
            " the API"
            " server would refuse the workers' pods; use `nestedContainers: cdi-per-pod`, or `gpuManagement: operator`"
            " for the pool",
        )


def nested_warning(way: NestedContainers, path: Path) -> Problem | None:
    """Return a warning if podman in the pods needs a looser security profile."""
    if way != "cdi-per-pod":
        return None
    return Problem(
        (*path, "nestedContainers"),
        "podman in its pods needs system calls that seccomp and AppArmor profiles forbid, so they run without"
        " either, though"
        " not privileged and without any capability; their namespace admits pods of level privileged"
        " (docs/advanced.md)",
    )
