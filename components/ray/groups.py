"""Groups of workers as written in YAML, where keys may be left out."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.ray.settings import RayClusterShape, WorkerGroupShape, merge

WORKER_GROUP = "workers"
"""Name of the only group, where the settings name none."""

HEAD_GROUP = "headgroup"
"""Name of the head's group in KubeRay and Ray (kuberay v1.6.2,
ray-operator/controllers/ray/utils/constant.go)."""


def groups_of(shape: RayClusterShape) -> dict[str, WorkerGroupShape]:
    """Return the groups of a shape by name, each with what it has from `worker`.

    They are sorted by name: KubeRay would recreate all pods for another order.
    """
    base = shape.worker.written()
    if not shape.worker_groups:
        return {WORKER_GROUP: WorkerGroupShape.model_validate(base | {"workers": shape.workers})}
    return {
        name: WorkerGroupShape.model_validate(merge(base, group.written()))
        for name, group in sorted(shape.worker_groups.items())
    }


def within(shape: RayClusterShape, name: str) -> tuple[str, ...]:
    """Return the path of a group's worker in the settings of its RayCluster."""
    return ("workerGroups", name) if shape.worker_groups else ("worker",)


def group_problems(shape: RayClusterShape, path: Path) -> Iterable[Problem]:
    """Yield problems of groups as written: two numbers of workers, and the head's name."""
    if HEAD_GROUP in shape.worker_groups:
        message = f"{HEAD_GROUP!r} is Ray's name for the head, so Ray's autoscaler would mix the two up; rename it"
        yield Problem((*path, "workerGroups", HEAD_GROUP), message, of_key=True)
    if shape.worker_groups and "workers" in shape.model_fields_set:
        yield Problem(
            (*path, "workers"),
            "is written beside `workerGroups`, whose groups have numbers of workers of their own, so it would count for"
            " none; write it in a group, or take it out",
        )
