"""An environment: a GKE cluster with its network, pools and operators, and the RayClusters on it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty, ProjectId, Region, Zone, region_of
from berth.components.gke.cluster_settings import ClusterSettings
from berth.components.gke.network_settings import NetworkSettings
from berth.components.gke.pool_settings import PoolSettings
from berth.components.isolation.settings import IsolationSettings
from berth.components.lifecycle.settings import KeeperSettings
from berth.components.operators.settings import OperatorsSettings
from berth.components.ray.settings import RayShape
from berth.components.ray.workload_settings import JobShape, ServiceShape
from berth.components.sharing.settings import SharingProfile
from berth.stacks.settings.policy import PolicySettings


class EnvironmentSettings(Settings):
    """One environment: `pulumi up` on its stack makes all of it.

    What refers to something else is checked in resolve.py, so that everything that is wrong is said at once.
    """

    project: ProjectId | None = None
    """Google Cloud project. Required, but for an existing cluster."""
    zone: Zone | None = None
    """Zone of a zonal cluster and of its nodes. Either this or `region` is required, but for an existing cluster."""
    region: Region | None = None
    """Region of a regional cluster, whose control plane survives the loss of a zone; `zones` says where its nodes are."""
    zones: list[Zone] = []
    """Zones of a regional cluster's nodes, where a pool does not name its own."""
    production: bool | None = None
    """It is a production environment, for which more policies hold. Default: the stack is `prod` or `production`, or its
    name begins with one of them and `-`."""
    labels: dict[NonEmpty, str] = {}
    """Labels of the cluster and its nodes in Google Cloud, for bills and owners."""
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$", examples=["USD"])] | None = None
    """Currency of the pools' `hourlyRate`."""
    cluster: ClusterSettings = ClusterSettings()
    network: NetworkSettings = NetworkSettings()
    operators: OperatorsSettings = OperatorsSettings()
    isolation: IsolationSettings = IsolationSettings()
    keeper: KeeperSettings | None = None
    """What suspends and wakes berths by their `lifecycle`. Default: it is there where a berth, or `defaults`, has one."""
    policies: PolicySettings = PolicySettings()
    sharing: dict[Name, SharingProfile] = {}
    """Ways to share GPUs, by name, for the pools' `sharing`. A pool without `sharing` has whole GPUs."""
    pools: Annotated[dict[Name, PoolSettings], Field(min_length=1)]
    """Node pools by name."""
    defaults: RayShape = RayShape()
    """What berths and clusters have where they don't say otherwise."""
    engineers: dict[Name, RayShape] = {}
    """One berth for each engineer, by the engineer's id. `alice: {}` takes all defaults."""
    clusters: dict[Name, RayShape] = {}
    """Named RayClusters whose workers each take a whole node unless they say otherwise."""
    jobs: dict[Name, JobShape] = {}
    """RayJobs by name: programs that run once. On a RayCluster of its own a job is sized as a named cluster is."""
    services: dict[Name, ServiceShape] = {}
    """RayServices by name: applications of Ray Serve, each on a RayCluster of its own, sized as a named cluster is."""

    @field_validator("engineers", "clusters", mode="before")
    @classmethod
    def _empty_entry(cls, value: object) -> object:
        """`alice:` with nothing after it reads as null and means all defaults."""
        if isinstance(value, dict):
            return {key: {} if entry is None else entry for key, entry in value.items()}
        return value

    def is_production(self, stack: str) -> bool:
        """Whether it is a production environment: as it says, else by its stack's name.

        Args:
            stack: the stack's name.
        """
        if self.production is not None:
            return self.production
        return stack.partition("-")[0] in ("prod", "production")

    @property
    def location(self) -> str:
        """Where the cluster is: its zone, or its region."""
        return self.zone or self.region or ""

    @property
    def in_region(self) -> str:
        """The region that everything is in."""
        return self.region or region_of(self.zone or "")

    def zones_of(self, pool: PoolSettings) -> tuple[str, ...]:
        """The zones of a pool's nodes, each once."""
        return tuple(dict.fromkeys(pool.zones or self.zones or ([self.zone] if self.zone else [])))
