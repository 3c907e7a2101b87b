"""A berth: one engineer's namespace with a RayCluster in it. A named cluster is the same without an engineer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import pulumi

from components.fabric.claims import claim_of, claim_template
from components.isolation.berth import isolated, isolation
from components.lifecycle.manifest import in_berth, kept
from components.manifest import MANAGED_BY, KubernetesObject, Manifest, forced, resource_type
from components.ray import nested
from components.ray.manifest import dashboard_service, ray_cluster
from stacks.settings.bounds import Bounds
from stacks.settings.fabric import ResourceApi
from stacks.settings.isolation import IsolationSettings
from stacks.settings.operators import KubeRaySettings
from stacks.settings.pools import Pools
from stacks.settings.ray import RayClusterSettings
from stacks.settings.resolve import namespace_of

ENVIRONMENT_LABEL = "berth/environment"
STACK_LABEL = "berth/stack"
OWNER_LABELS = {"engineer": "berth/engineer", "cluster": "berth/cluster"}


@dataclass(frozen=True)
class BerthInputs:
    """What a berth needs to know.

    Attributes:
        settings: its RayCluster.
        pools: the environment's node pools by name.
        environment: name of the environment.
        stack: the stack that makes it: the environment's own or the engineer's.
        kind: an engineer's berth or a named cluster.
        resource_api: the version of resource.k8s.io that its claim templates are written in.
        isolation: what the environment loosens of what keeps its berths apart.
        kuberay: where the operator is.
    """

    settings: RayClusterSettings
    pools: Pools
    environment: str
    stack: str
    kind: Literal["engineer", "cluster"]
    resource_api: ResourceApi = "v1"
    isolation: IsolationSettings = field(default_factory=IsolationSettings)
    kuberay: KubeRaySettings = field(default_factory=KubeRaySettings)


class Berth(pulumi.ComponentResource):
    """Namespace with what keeps it apart and RayCluster, with the template of its workers' claims and the load balancer of its head where there are such."""

    settings: RayClusterSettings
    """The RayCluster's settings."""
    namespace: str
    """The namespace's name."""
    ray_cluster: KubernetesObject
    """The RayCluster."""

    def __init__(self, name: str, inputs: BerthInputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the berth.

        Args:
            name: the engineer's id or the cluster's name.
            inputs: what it consists of.
            opts: must carry the kubernetes provider.
        """
        super().__init__("berth:index:Berth", name, None, opts)
        self.settings = inputs.settings
        self.namespace = namespace_of(inputs.settings.name)
        labels = berth_labels(inputs)
        cluster = kept(ray_cluster(inputs.settings, inputs.pools, self.namespace, labels), inputs.settings)
        dashboard = dashboard_service(inputs.settings, self.namespace, labels)
        apart = isolation(
            inputs.settings,
            inputs.isolation,
            inputs.kuberay,
            inputs.pools,
            [cluster, *([dashboard] if dashboard else [])],
        )
        namespace = KubernetesObject(
            name,
            namespace_manifest(self.namespace, labels | apart.namespace_labels),
            pulumi.ResourceOptions(parent=self),
        )
        in_namespace = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        needed: list[pulumi.Resource] = [namespace, *self._claim_template(name, inputs, labels, namespace)]
        needed += [KubernetesObject(f"{name}-{each['metadata']['name']}", each, in_namespace) for each in apart.objects]
        for each in in_berth(
            inputs.settings, self.namespace, labels, network_policies=inputs.isolation.network_policies
        ):
            needed.append(KubernetesObject(f"{name}-{each['metadata']['name']}", each, in_namespace))
        if programs := nested.config_map(inputs.settings, self.namespace, labels):
            needed.append(KubernetesObject(f"{name}-{programs['metadata']['name']}", programs, in_namespace))
        made = isolated(cluster, apart.level, inputs.settings.priority)
        autoscaled = isinstance(inputs.settings.workers, Bounds)
        self.ray_cluster = KubernetesObject(
            name,
            # To the API server the groups of workers are one value, the autoscaler's since it last set a number in it: without force
            # every later edit would be a conflict. Another stack's berth is one still, by the namespace.
            forced(made) if autoscaled else made,
            pulumi.ResourceOptions(
                parent=self,
                depends_on=needed,
                # Ray's autoscaler owns the number of replicas then; Pulumi would set it back. With an edit beside it the number that
                # Pulumi knows is applied too, which ends no worker: KubeRay leaves that to the autoscaler (kuberay v1.6.2,
                # ray-operator/controllers/ray/raycluster_controller.go), and the autoscaler sets it anew.
                ignore_changes=["spec.workerGroupSpecs[*].replicas"] if autoscaled else [],
            ),
        )
        if dashboard:
            KubernetesObject(name, dashboard, in_namespace)
        self.register_outputs({"namespace": self.namespace, "rayCluster": inputs.settings.name})

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


def berth_labels(inputs: BerthInputs) -> dict[str, str]:
    """The labels of all that belongs to a berth, its pods included."""
    return {
        **MANAGED_BY,
        ENVIRONMENT_LABEL: inputs.environment,
        STACK_LABEL: inputs.stack,
        OWNER_LABELS[inputs.kind]: inputs.settings.name,
    }


def namespace_manifest(name: str, labels: dict[str, str]) -> Manifest:
    """A berth's namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
