"""RayCluster on pools of its environment, with its groups and pods: what rules judge."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from berth.components.core.problems import SettingPath
from berth.components.core.types import parse_quantity
from berth.components.hardware.machines import Machine
from berth.components.isolation import IsolationSettings
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.demand import disk_of_a_container, disk_of_a_node
from berth.components.ray.settings import RayShape
from berth.components.sharing import Pool, Pools


@dataclass(frozen=True)
class AvailablePools:
    """Pools of an environment, as far as they are right.

    Attributes:
        pools: pools by name.
        unknown: names of pools with problems of their own, which decide nothing about RayClusters.
        on_existing_cluster: whether the cluster is an existing one, whose settings have no project.
        isolation: isolation of the berths.
    """

    pools: Pools
    unknown: frozenset[str] = frozenset()
    on_existing_cluster: bool = False
    isolation: IsolationSettings = field(default_factory=IsolationSettings)


@dataclass(frozen=True)
class PlacedCluster:
    """A complete RayCluster on its pools.

    Attributes:
        cluster: the complete settings.
        written: settings as written, without those of `defaults`.
        path: path of the settings as written.
        available: pools of the environment.
    """

    cluster: RayClusterSettings
    written: RayShape
    path: SettingPath
    available: AvailablePools

    @property
    def pools(self) -> Pools:
        """Node pools of the environment by name."""
        return self.available.pools


@dataclass(frozen=True)
class PlacedGroup:
    """A group of workers on its pool.

    Attributes:
        placed: the RayCluster that the group belongs to.
        group: the group.
    """

    placed: PlacedCluster
    group: WorkerGroup

    @property
    def cluster(self) -> RayClusterSettings:
        """Settings of the RayCluster."""
        return self.placed.cluster

    @property
    def pool(self) -> Pool:
        """Pool of the group's workers."""
        return self.placed.pools[self.group.pool]

    @property
    def machine(self) -> Machine:
        """Machine type of the pool's nodes."""
        return self.pool.settings.machine


@dataclass(frozen=True)
class PlacedPod:
    """The head, or any worker of a group, on a node of its pool.

    Attributes:
        placed: the RayCluster that the pod belongs to.
        role: the pod's role, as messages name it.
        pod: the pod's settings.
    """

    placed: PlacedCluster
    role: Literal["head", "worker"]
    pod: Head | WorkerGroup

    @property
    def cluster(self) -> RayClusterSettings:
        """Settings of the RayCluster."""
        return self.placed.cluster

    @property
    def pool(self) -> Pool:
        """Pool of the pod."""
        return self.placed.pools[self.pod.pool]

    @property
    def on_existing_cluster(self) -> bool:
        """Whether berth knows nodes only by their machine type."""
        return self.placed.available.on_existing_cluster

    @property
    def disk(self) -> Decimal | None:
        """Bytes of its disk that a node leaves to pods; None where nobody says."""
        return disk_of_a_node(self.pool, created=not self.on_existing_cluster)

    @property
    def most_disk(self) -> Decimal | None:
        """Bytes of its node's disk that a container may use; None without quotas."""
        isolation = self.placed.available.isolation
        if not isolation.quotas:
            return None
        return parse_quantity(
            disk_of_a_container(
                isolation.ephemeral_storage,
                self.cluster,
                self.placed.pools,
                created=not self.on_existing_cluster,
            )
        )

    @property
    def node(self) -> str:
        """Words for a node of the pool."""
        return f"a node of pool {self.pool.name!r} ({self.pool.settings.machine.name})"


def placed_groups(placed: PlacedCluster) -> Iterator[PlacedGroup]:
    """Yield the groups of a RayCluster."""
    for group in placed.cluster.groups:
        yield PlacedGroup(placed, group)
