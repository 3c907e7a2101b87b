"""Live fleet of an environment: its node pools, RayClusters, RayJobs and RayServices."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel

from berth.components.core.owner import OwnerKind
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.lifecycle import Life
from berth.components.ray.live.nodes import Node
from berth.components.ray.live.restarts import Restart


@dataclass(frozen=True)
class LivePool:
    """A node pool."""

    name: str
    machine_type: str
    nodes: int
    nodes_at_least: int
    """Number of nodes that the pool always has, by its settings."""
    nodes_ready: int
    gpus: int
    """GPUs, or shares of GPUs, that the nodes offer to pods."""
    gpus_in_use: int
    """GPUs that pods on the nodes hold."""
    nics: int
    """RDMA NICs that the nodes publish for claims."""
    nics_in_use: int
    """RDMA NICs that claims hold."""
    nics_of_machines: int
    """RDMA NICs that the nodes should publish, by the pool's settings."""
    sharing: str
    """How GPUs are shared; "" for whole GPUs."""
    unit: str
    """Noun for what `gpus` and its pods' requests count: `GPU`, `share`."""
    gpu_unit: GpuUnit
    """Unit of `gpus`: a whole GPU, a share of one or a MIG instance."""


@dataclass(frozen=True)
class LiveGroup:
    """A group of workers of a berth or a named cluster."""

    name: str
    pool: str
    workers_ready: int
    workers_desired: int
    gpus: int
    """GPUs, or shares of GPUs, that the workers request."""


@dataclass(frozen=True)
class LiveRayCluster:
    """A berth or a named cluster."""

    name: str
    """The engineer's id or the cluster's name."""
    namespace: str
    ray_cluster: str
    stack: str
    pool: str
    """Node pool of the workers, or several with commas."""
    state: str
    ready: bool
    """Head and all workers are ready, or the RayCluster is suspended."""
    workers_ready: int
    workers_desired: int
    gpus: int
    nics: int
    """RDMA NICs that the workers hold."""
    reasons: list[str]
    life: Life
    groups: list[LiveGroup]
    restarts: list[Restart] = field(default_factory=list)
    """Pods that were replaced or started again in the last day, the newest first."""


@dataclass(frozen=True)
class LiveJob:
    """A RayJob."""

    name: str
    """The job's name in the settings."""
    namespace: str
    ray_job: str
    """The RayJob's name in the cluster, which depends on its content."""
    ray_cluster: str
    """The RayCluster that the job runs on; "" before KubeRay has chosen it."""
    stack: str
    state: str
    """Ray's state, or KubeRay's before Ray has the job."""
    ready: bool
    """The job runs, or has succeeded."""
    created: str
    ended: str
    reasons: list[str]


@dataclass(frozen=True)
class LiveService:
    """A RayService."""

    name: str
    namespace: str
    stack: str
    pool: str
    state: str
    """`ready`, `upgrading`, `serving` (not all applications run), or `starting`."""
    ready: bool
    """The newest edit serves."""
    applications_running: int
    applications: int
    serving: int
    """Number of pods that answer requests."""
    workers_ready: int
    """Number of ready workers in the RayClusters of the service."""
    workers_desired: int
    gpus: int
    address: str
    """Address for requests from pods."""
    created: str
    reasons: list[str]


@dataclass(frozen=True)
class MissingOwner:
    """Owner that the environment's stack declares, and that has no object on the cluster."""

    kind: OwnerKind
    name: str


@dataclass(frozen=True)
class Fleet:
    """Live objects of one environment, and declared ones that are missing."""

    stack: str
    environment: str
    pools: list[LivePool]
    berths: list[LiveRayCluster]
    clusters: list[LiveRayCluster]
    jobs: list[LiveJob] = field(default_factory=list)
    services: list[LiveService] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    not_in_state: list[str] = field(default_factory=list)
    """Namespaces of berths that the state of the environment's stack does not know."""
    missing: list[MissingOwner] = field(default_factory=list)
    """Owners that the state knows, without an object on the cluster."""

    @property
    def workloads(self) -> list[LiveRayCluster | LiveJob | LiveService]:
        """Berths, clusters, jobs and services."""
        return [*self.berths, *self.clusters, *self.jobs, *self.services]

    @property
    def ready(self) -> bool:
        """Whether what is declared exists and is ready; RayJobs run or have succeeded."""
        return all(workload.ready for workload in self.workloads) and not self.missing

    def counted(self, gpus: int, pool: str) -> str:
        """Return what pods request on a pool: `2 × B200`, `2 shares of 1/4 B200`."""
        units = {known.name: known.gpu_unit for known in self.pools}
        return units.get(pool, GpuUnit()).brief(gpus)

    def requested(self, ray: LiveRayCluster) -> str:
        """Return what all workers of a RayCluster request: `8 × B200 + 2 shares of 1/4 L4`."""
        by_pool: Counter[str] = Counter()
        for group in ray.groups:
            by_pool[group.pool] += group.gpus
        if not by_pool.total():
            return self.counted(0, ray.groups[0].pool)
        return " + ".join(self.counted(gpus, pool) for pool, gpus in by_pool.items() if gpus)

    def of_stack(self, stack: str) -> Fleet:
        """Return the pools, and the berth of an engineer's stack."""
        berths = [berth for berth in self.berths if berth.stack == stack]
        return replace(self, berths=berths, clusters=[], jobs=[], services=[], not_in_state=[])

    def as_json(self) -> dict[str, Any]:
        """Return the fleet for programs, with camelCase keys."""
        return {to_camel(key): _camel(value) for key, value in asdict(self).items()}


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(key): _camel(inner) for key, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list) else value
