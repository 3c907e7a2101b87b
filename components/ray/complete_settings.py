"""Complete settings of a RayCluster: what holds, on the pools of its environment."""

from typing import Annotated

from pydantic import Field

from berth.components.core.bounds import WorkerBounds, at_most
from berth.components.core.types import Name, NonEmpty, Quantity
from berth.components.fabric import Nccl
from berth.components.isolation import PriorityClass
from berth.components.lifecycle import Lifecycle
from berth.components.ray.settings import (
    ClusterOptions,
    Dashboard,
    HeadShape,
    Wait,
    WorkerGroupShape,
)
from berth.components.ray.storage.home import Home


class Head(HeadShape):
    """Head pod, complete."""

    pool: Name


class WorkerGroup(WorkerGroupShape):
    """Group of workers, complete."""

    name: Name
    settings_path: tuple[str, ...]
    """Path of the worker's settings in those of the RayCluster."""
    pool: Name
    gpu_resource: NonEmpty
    nics: int
    cpu_limit: Quantity
    nccl: Nccl

    @property
    def workers_path(self) -> tuple[str, ...]:
        """Path of the number of workers in the settings of the RayCluster."""
        return (*self.settings_path, "workers") if self.is_named else ("workers",)

    @property
    def is_named(self) -> bool:
        """Whether the group is one of `workerGroups`."""
        return len(self.settings_path) > 1

    @property
    def at_start(self) -> int:
        """Number of workers at the start, which capacity is checked against."""
        return self.workers.at_start if isinstance(self.workers, WorkerBounds) else self.workers

    @property
    def at_most(self) -> int:
        """Largest number of workers."""
        return at_most(self.workers)

    @property
    def written_count(self) -> str:
        """Number of workers, or its bounds: `2`, `0..4`."""
        if isinstance(self.workers, int):
            return str(self.workers)
        return f"{self.workers.min}..{self.workers.max}"


class RayClusterSettings(ClusterOptions):
    """RayCluster, complete: the input of its manifest."""

    name: Name
    head: Head
    groups: Annotated[list[WorkerGroup], Field(min_length=1)]
    """Groups of workers, sorted by name."""
    priority: PriorityClass
    dashboard: Dashboard = "private"
    home: Home | None = None
    lifecycle: Lifecycle = Lifecycle()
    wait: Wait = Wait()

    @property
    def workers_at_most(self) -> int:
        """Largest number of worker pods."""
        return sum(group.at_most for group in self.groups)

    @property
    def autoscaled(self) -> bool:
        """Whether Ray's autoscaler chooses the number of workers of a group."""
        return any(isinstance(group.workers, WorkerBounds) for group in self.groups)

    @property
    def pools(self) -> list[Name]:
        """Pools of the workers, without repetition."""
        return list(dict.fromkeys(group.pool for group in self.groups))
