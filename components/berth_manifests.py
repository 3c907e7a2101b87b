"""Manifests of a berth: pure functions of what the berth consists of.

The component registers these manifests, and policies judge the same ones before anything is registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from berth.components.core.bounds import Bounds
from berth.components.core.manifest import Manifest, forced
from berth.components.core.owner import OwnerKind, namespace_of, owner_labels
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import IsolationInputs, IsolationSettings, harden, isolate
from berth.components.lifecycle import keeper_access, with_lifecycle
from berth.components.nested import config_map
from berth.components.operators import KubeRaySettings
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import RayClusterSettings
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings
from berth.components.ray.workloads import as_kuberay_writes_it, ray_job, ray_service, told_apart
from berth.components.sharing import Pools


@dataclass(frozen=True)
class BerthManifests:
    """Manifests of a berth, except the template of its workers' claims, which the served API decides.

    Attributes:
        namespace: the namespace.
        objects: what is in the namespace before any pod.
        ray: the RayCluster, or the RayJob or RayService that has KubeRay create it.
        jobs: RayJobs on the RayCluster, by name.
        dashboard: the load balancer of the head; None where the head is private.
    """

    namespace: Manifest
    objects: Sequence[Manifest]
    ray: Manifest
    jobs: dict[str, Manifest]
    dashboard: Manifest | None


@dataclass(frozen=True)
class BerthInputs:
    """Inputs of a berth.

    Attributes:
        settings: complete settings of its RayCluster.
        pools: the environment's node pools by name.
        environment: name of the environment.
        stack: stack that registers the berth: the environment's own or the engineer's.
        kind: kind of owner.
        resource_api: version of resource.k8s.io for claim templates.
        isolation: what the environment loosens of its berths' isolation.
        kuberay: where the operator is.
        workload: RayJob or RayService that has KubeRay create the RayCluster.
        jobs: RayJobs that run on the RayCluster.
        manifests: manifests of these inputs, where they are built already.
    """

    settings: RayClusterSettings
    pools: Pools
    environment: str
    stack: str
    kind: OwnerKind
    resource_api: ResourceApi = "v1"
    isolation: IsolationSettings = field(default_factory=IsolationSettings)
    kuberay: KubeRaySettings = field(default_factory=KubeRaySettings)
    workload: RayJobSettings | RayServiceSettings | None = None
    jobs: Sequence[RayJobSettings] = ()
    manifests: BerthManifests | None = field(default=None, repr=False, compare=False)

    def labels(self, kind: OwnerKind | None = None, name: str = "") -> dict[str, str]:
        """Labels of the berth's objects, or of a job's on it."""
        return owner_labels(self.environment, self.stack, kind or self.kind, name or self.settings.name)


def built(inputs: BerthInputs) -> BerthInputs:
    """Return inputs with their manifests."""
    return replace(inputs, manifests=berth_manifests(inputs))


def berth_manifests(inputs: BerthInputs) -> BerthManifests:
    """Return the manifests that a berth registers."""
    settings, labels, namespace = inputs.settings, inputs.labels(), namespace_of(inputs.settings.name)
    cluster = with_lifecycle(ray_cluster(settings, inputs.pools, namespace, labels), settings.lifecycle)
    dashboard = dashboard_service(settings, namespace, labels)
    jobs = {job.name: ray_job(job, cluster, inputs.labels("job", job.name)) for job in inputs.jobs}
    ray, clients = _ray(inputs.workload, cluster, labels)
    isolation = isolate(
        IsolationInputs(
            inputs.isolation,
            inputs.kuberay,
            settings.access,
            settings.priority,
            {pool.offer.resource for pool in inputs.pools.values() if pool.offer},
            clients,
        ),
        [ray, *jobs.values(), *([dashboard] if dashboard else [])],
    )
    keeper = keeper_access(cluster, settings.lifecycle, network_policies=inputs.isolation.network_policies)
    programs = config_map(settings.nested_containers, namespace, labels)
    ray = harden(ray, isolation.level, settings.priority)
    if isinstance(inputs.workload, RayServiceSettings):
        ray = told_apart(ray)
    if inputs.workload:
        ray = _of_kuberay(ray)
    elif isinstance(settings.workers, Bounds):
        # To the API server the groups of workers are one value, the autoscaler's since it last set a number in it: without
        # force every later edit would be a conflict. Another stack's berth is still a conflict, by the namespace.
        ray = forced(ray)
    return BerthManifests(
        namespace_manifest(namespace, labels | isolation.namespace_labels),
        [*isolation.objects, *keeper, *([programs] if programs else [])],
        ray,
        {name: _of_kuberay(harden(job, isolation.level, settings.priority)) for name, job in jobs.items()},
        dashboard,
    )


def _ray(
    workload: RayJobSettings | RayServiceSettings | None, cluster: Manifest, labels: dict[str, str]
) -> tuple[Manifest, Sequence[str]]:
    """Return the main manifest, and the namespaces whose pods may send requests to Ray Serve."""
    if isinstance(workload, RayJobSettings):
        return ray_job(workload, cluster, labels), ()
    if isinstance(workload, RayServiceSettings):
        return ray_service(workload, cluster), workload.clients
    return cluster, ()


def _of_kuberay(manifest: Manifest) -> Manifest:
    """Force a RayJob or RayService: KubeRay writes parts of it, so every edit of those would be a conflict."""
    return forced(as_kuberay_writes_it(manifest))


def namespace_manifest(name: str, labels: dict[str, str]) -> Manifest:
    """Return a berth's namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
