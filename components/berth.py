"""A berth: one namespace with a RayCluster in it, of an engineer, a named cluster, a RayJob or a RayService."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pulumi

from berth.components.berth_manifests import BerthInputs, berth_manifests
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.bounds import Bounds
from berth.components.core.manifest import Manifest, resource_type
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.fabric import claim_of, claim_template
from berth.components.hardware.names import ResourceApi
from berth.components.ray.settings import RayClusterSettings
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings
from berth.components.ray.workloads import RAY_CLUSTER_CONFIG

__all__ = ["Berth", "BerthInputs", "Job"]


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
    """Namespace with its isolation and a RayCluster, or the RayJob or RayService that has KubeRay create one.

    Where the settings ask for them, also the template of the workers' claims, the load balancer of the head, and RayJobs that
    run on the RayCluster.
    """

    settings: RayClusterSettings
    """Settings of the RayCluster."""
    kind: OwnerKind
    """Kind of owner."""
    namespace: str
    """Name of the namespace."""
    ray: KubernetesObject
    """The RayCluster, RayJob or RayService."""
    jobs: list[Job]
    """RayJobs: the berth's own, or those that run on its RayCluster."""

    def __init__(self, name: str, inputs: BerthInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the berth.

        Args:
            name: the engineer's id or the cluster's name.
            inputs: what the berth consists of.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:index:Berth", name, None, opts)
        self.settings, self.kind = inputs.settings, inputs.kind
        self.namespace = namespace_of(inputs.settings.name)
        manifests = inputs.manifests or berth_manifests(inputs)
        namespace = KubernetesObject(name, manifests.namespace, pulumi.ResourceOptions(parent=self))
        in_namespace = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        needed: list[pulumi.Resource] = [namespace, *self._claim_template(name, inputs, namespace)]
        needed += [
            KubernetesObject(f"{name}-{manifest['metadata']['name']}", manifest, in_namespace)
            for manifest in manifests.objects
        ]
        self.ray = self._ray(name, inputs, manifests.ray, needed)
        on_cluster = pulumi.ResourceOptions(parent=self, depends_on=[self.ray], delete_before_replace=True)
        self.jobs = [Job(job, KubernetesObject(job.name, manifests.jobs[job.name], on_cluster)) for job in inputs.jobs]
        if isinstance(inputs.workload, RayJobSettings):
            self.jobs.append(Job(inputs.workload, self.ray))
        if manifests.dashboard:
            KubernetesObject(name, manifests.dashboard, in_namespace)
        outputs = {"namespace": self.namespace}
        self.register_outputs(outputs if inputs.workload else {**outputs, "rayCluster": inputs.settings.name})

    def _ray(
        self, name: str, inputs: BerthInputs, manifest: Manifest, needed: list[pulumi.Resource]
    ) -> KubernetesObject:
        """Register the RayCluster, RayJob or RayService."""
        opts = pulumi.ResourceOptions(parent=self, depends_on=needed)
        if inputs.workload:
            # The next one needs the room that the last one has.
            more = pulumi.ResourceOptions(delete_before_replace=True)
            if isinstance(inputs.workload, RayServiceSettings):
                more.replace_on_changes = [RAY_CLUSTER_CONFIG] if inputs.workload.upgrade_strategy == "Recreate" else []
            return KubernetesObject(name, manifest, pulumi.ResourceOptions.merge(opts, more))
        if not isinstance(inputs.settings.workers, Bounds):
            return KubernetesObject(name, manifest, opts)
        # Ray's autoscaler owns the number of replicas then; Pulumi would set it back. With an edit beside it the number that
        # Pulumi knows is applied too, which ends no worker: KubeRay leaves that to the autoscaler (kuberay v1.6.2,
        # ray-operator/controllers/ray/raycluster_controller.go), and the autoscaler sets it again.
        more = pulumi.ResourceOptions(ignore_changes=["spec.workerGroupSpecs[*].replicas"])
        return KubernetesObject(name, manifest, pulumi.ResourceOptions.merge(opts, more))

    def _claim_template(self, name: str, inputs: BerthInputs, namespace: pulumi.Resource) -> list[pulumi.Resource]:
        """Register the template of the workers' claims, if they claim anything."""
        claim = claim_of(inputs.settings.worker, inputs.pools[inputs.settings.worker.pool])
        if claim is None:
            return []
        manifest = claim_template(claim, inputs.resource_api, self.namespace, inputs.labels())
        # A cluster that serves a newer version has the same object in it: made anew, it would be deleted under its new name too.
        others = [manifest | {"apiVersion": f"resource.k8s.io/{api}"} for api in get_args(ResourceApi)]
        aliases = [pulumi.Alias(type_=resource_type(other)) for other in others if other != manifest]
        opts = pulumi.ResourceOptions(parent=self, depends_on=[namespace], aliases=aliases)
        return [KubernetesObject(f"{name}-{claim.template_name}", manifest, opts)]
