"""Rules of a RayCluster as written: its groups and their numbers of workers."""

from collections.abc import Iterator

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.ray.layers import HEAD_GROUP
from berth.components.ray.settings import RayShape

SHAPES = Rules[RayShape](RayShape)
"""Rules of a RayCluster as written."""


def shape_problems(shape: RayShape, path: SettingPath) -> Iterator[Problem]:
    """Yield the problems of a RayCluster as written, by itself."""
    return SHAPES.problems(shape, path)


@SHAPES.problem("workerGroups.*")
def group_with_the_heads_name(shape: RayShape) -> Iterator[Breach]:
    """Ray's autoscaler tells groups apart by name."""
    if HEAD_GROUP in shape.worker_groups:
        yield Breach(
            "'headgroup' is Ray's name for the head, so Ray's autoscaler would mix the two up;"
            " rename it",
            at=("workerGroups", HEAD_GROUP),
        )


@SHAPES.problem("workers")
def number_of_workers_beside_groups(shape: RayShape) -> str | None:
    """Each group has a number of workers of its own."""
    if shape.worker_groups and "workers" in shape.model_fields_set:
        return (
            "is written beside `workerGroups`, whose groups have numbers of workers of their own,"
            " so it would count for none; write it in a group, or take it out"
        )
    return None
