"""A berth: one engineer's namespace with a RayCluster in it. A named cluster is the same, and so is a RayJob's or RayService's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import pulumi

from berth.components.cluster.objects import KubernetesObject
from berth.components.core.bounds import Bounds
from berth.components.core.manifest import Manifest, forced, resource_type
from berth.components.core.owner import OwnerKind, namespace_of, owner_labels
from berth.components.fabric import claim_of, claim_template
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import IsolationInputs, IsolationSettings, harden, isolate
from berth.components.lifecycle import keeper_access, with_lifecycle
from berth.components.nested import config_map
from berth.components.operators import KubeRaySettings
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import RayClusterSettings
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings
from berth.components.ray.workloads import RAY_CLUSTER_CONFIG, as_kuberay_writes_it, ray_job, ray_service, told_apart
from berth.components.sharing import Pools


@dataclass(frozen=True)
class BerthInputs:
    """What a berth needs to know.

    Attributes:
        settings: its RayCluster.
        pools: the environment's node pools by name.
        environment: name of the environment.
        stack: the stack that makes it: the environment's own or the engineer's.
        kind: whose it is: an engineer's, a named cluster's, a RayJob's or a RayService's.
        resource_api: the version of resource.k8s.io that its claim templates are written in.
        isolation: what the environment loosens of what keeps its berths apart.
        kuberay: where the operator is.
        workload: the RayJob or RayService that has KubeRay make the RayCluster.
        jobs: RayJobs that run on the RayCluster.
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


@dataclass(frozen=True)
class Job:
    """A RayJob that was registered.

    Attributes:
        settings: its settings.
        resource: the RayJob.
    """

    settings: RayJobSettings
    resource: KubernetesObject


class Berth(pulumi.ComponentResource):
    """Namespace with what keeps it apart and RayCluster, or the RayJob or RayService that has KubeRay make one.

    Where there are such, with the template of its workers' claims, the load balancer of its head, and RayJobs that run on it.
    """

    settings: RayClusterSettings
    """The RayCluster's settings."""
    kind: OwnerKind
    """Whose it is."""
    namespace: str
    """The namespace's name."""
    ray: KubernetesObject
    """The RayCluster, RayJob or RayService."""
    jobs: list[Job]
    """The RayJobs: itself, or those that run on it."""

    def __init__(self, name: str, inputs: BerthInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the berth.

        Args:
            name: the engineer's id or the cluster's name.
            inputs: what it consists of.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:index:Berth", name, None, opts)
        self.settings, self.kind = inputs.settings, inputs.kind
        self.namespace = namespace_of(inputs.settings.name)
        labels = owner_labels(inputs.environment, inputs.stack, inputs.kind, inputs.settings.name)
        lifecycle = inputs.settings.lifecycle
        cluster = with_lifecycle(ray_cluster(inputs.settings, inputs.pools, self.namespace, labels), lifecycle)
        dashboard = dashboard_service(inputs.settings, self.namespace, labels)
        main = _workload(inputs, cluster, labels)
        job_labels = [owner_labels(inputs.environment, inputs.stack, "job", job.name) for job in inputs.jobs]
        jobs = {job.name: ray_job(job, cluster, of_job) for job, of_job in zip(inputs.jobs, job_labels, strict=True)}
        apart = isolate(
            IsolationInputs(
                inputs.isolation,
                inputs.kuberay,
                inputs.settings.access,
                inputs.settings.priority,
                {pool.offer.resource for pool in inputs.pools.values() if pool.offer},
                inputs.workload.clients if isinstance(inputs.workload, RayServiceSettings) else (),
            ),
            [main, *jobs.values(), *([dashboard] if dashboard else [])],
        )
        namespace = KubernetesObject(
            name,
            namespace_manifest(self.namespace, labels | apart.namespace_labels),
            pulumi.ResourceOptions(parent=self),
        )
        in_namespace = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        needed: list[pulumi.Resource] = [namespace, *self._claim_template(name, inputs, labels, namespace)]
        needed += [KubernetesObject(f"{name}-{each['metadata']['name']}", each, in_namespace) for each in apart.objects]
        for manifest in keeper_access(cluster, lifecycle, network_policies=inputs.isolation.network_policies):
            needed.append(KubernetesObject(f"{name}-{manifest['metadata']['name']}", manifest, in_namespace))
        if programs := config_map(inputs.settings.nested_containers, self.namespace, labels):
            needed.append(KubernetesObject(f"{name}-{programs['metadata']['name']}", programs, in_namespace))
        self.ray = self._ray(name, inputs, harden(main, apart.level, inputs.settings.priority), needed)
        on_cluster = pulumi.ResourceOptions(parent=self, depends_on=[self.ray], delete_before_replace=True)
        self.jobs = [
            Job(
                each,
                KubernetesObject(
                    each.name, _of_kuberay(harden(jobs[each.name], apart.level, inputs.settings.priority)), on_cluster
                ),
            )
            for each in inputs.jobs
        ]
        if isinstance(inputs.workload, RayJobSettings):
            self.jobs.append(Job(inputs.workload, self.ray))
        if dashboard:
            KubernetesObject(name, dashboard, in_namespace)
        outputs = {"namespace": self.namespace}
        self.register_outputs(outputs if inputs.workload else {**outputs, "rayCluster": inputs.settings.name})

    def _ray(self, name: str, inputs: BerthInputs, made: Manifest, needed: list[pulumi.Resource]) -> KubernetesObject:
        """Register what all the rest is for."""
        opts = pulumi.ResourceOptions(parent=self, depends_on=needed)
        if inputs.workload:
            # The next one needs the room that the last one has.
            more = pulumi.ResourceOptions(delete_before_replace=True)
            if isinstance(inputs.workload, RayServiceSettings):
                made = told_apart(made)
                more.replace_on_changes = [RAY_CLUSTER_CONFIG] if inputs.workload.upgrade_strategy == "Recreate" else []
            return KubernetesObject(name, _of_kuberay(made), pulumi.ResourceOptions.merge(opts, more))
        if not isinstance(inputs.settings.workers, Bounds):
            return KubernetesObject(name, made, opts)
        # Ray's autoscaler owns the number of replicas then; Pulumi would set it back. With an edit beside it the number that
        # Pulumi knows is applied too, which ends no worker: KubeRay leaves that to the autoscaler (kuberay v1.6.2,
        # ray-operator/controllers/ray/raycluster_controller.go), and the autoscaler sets it anew.
        more = pulumi.ResourceOptions(ignore_changes=["spec.workerGroupSpecs[*].replicas"])
        # To the API server the groups of workers are one value, the autoscaler's since it last set a number in it: without force
        # every later edit would be a conflict. Another stack's berth is one still, by the namespace.
        return KubernetesObject(name, forced(made), pulumi.ResourceOptions.merge(opts, more))

    def _claim_template(
        self, name: str, inputs: BerthInputs, labels: dict[str, str], namespace: pulumi.Resource
    ) -> list[pulumi.Resource]:
        """The template of the workers' claims; none where they claim nothing."""
        claim = claim_of(inputs.settings.worker, inputs.pools[inputs.settings.worker.pool])
        if claim is None:
            return []
        manifest = claim_template(claim, inputs.resource_api, self.namespace, labels)
        # A cluster that serves a newer version has the same object in it: made anew, it would be deleted under its new name too.
        others = [manifest | {"apiVersion": f"resource.k8s.io/{api}"} for api in get_args(ResourceApi)]
        aliases = [pulumi.Alias(type_=resource_type(each)) for each in others if each != manifest]
        opts = pulumi.ResourceOptions(parent=self, depends_on=[namespace], aliases=aliases)
        return [KubernetesObject(f"{name}-{claim.template_name}", manifest, opts)]


def _workload(inputs: BerthInputs, cluster: Manifest, labels: dict[str, str]) -> Manifest:
    if isinstance(inputs.workload, RayJobSettings):
        return ray_job(inputs.workload, cluster, labels)
    if isinstance(inputs.workload, RayServiceSettings):
        return ray_service(inputs.workload, cluster)
    return cluster


def _of_kuberay(made: Manifest) -> Manifest:
    """A RayJob or RayService, of which KubeRay writes parts: without force every edit of these would be a conflict."""
    return forced(as_kuberay_writes_it(made))


def namespace_manifest(name: str, labels: dict[str, str]) -> Manifest:
    """A berth's namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
