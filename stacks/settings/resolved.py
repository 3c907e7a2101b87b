"""Complete RayClusters of a stack, with everything that is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from berth.components.core.problems import Problem
from berth.components.ray import (
    Demand,
    RayClusterSettings,
    RayJobSettings,
    RayServiceSettings,
    Workload,
    cluster_workload,
    job_workload,
    service_workload,
)
from berth.components.sharing import Pools


@dataclass
class Resolved:
    """Complete RayClusters of a stack."""

    pools: Pools
    berths: list[RayClusterSettings] = field(default_factory=list)
    clusters: list[RayClusterSettings] = field(default_factory=list)
    jobs: list[RayJobSettings] = field(default_factory=list)
    services: list[RayServiceSettings] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    """Demands of the RayClusters on the pools."""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """Settings that work, but probably not as intended."""

    @property
    def every(self) -> list[RayClusterSettings]:
        """RayClusters that the stack registers or has KubeRay create."""
        return [workload.settings for workload in self.workloads()]

    def workloads(self) -> Iterator[Workload]:
        """Yield every RayCluster, and the RayJob or RayService that has its own."""
        yield from (cluster_workload(berth, "engineer") for berth in self.berths)
        yield from (cluster_workload(cluster, "cluster") for cluster in self.clusters)
        yield from (job_workload(job) for job in self.jobs if job.own_cluster)
        yield from (service_workload(service) for service in self.services)
