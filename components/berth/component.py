"""Berth as a Pulumi component."""

from typing import Any, get_args

import pulumi

from berth.components.berth.losses import losses_hook
from berth.components.berth.manifests import BerthInputs
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import Manifest, forced, resource_type
from berth.components.core.owner import KEEPS_HOME, namespace_of
from berth.components.fabric import claim_template
from berth.components.hardware.names import ResourceApi
from berth.components.plan.plan import BERTH


class Berth(pulumi.ComponentResource):
    """Namespace with its isolation and a RayCluster, a RayJob or a RayService.

    Depending on the settings also templates of the workers' claims, the load balancer of the
    head, and RayJobs that run on the RayCluster.
    """

    inputs: BerthInputs
    namespace: str
    main: KubernetesObject | None
    """Registered RayCluster, RayJob or RayService; None where another stack registers it."""
    registered: dict[tuple[str, str], KubernetesObject]
    """Main object and the RayJobs on the RayCluster, by kind and name."""

    def __init__(
        self, name: str, inputs: BerthInputs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the berth.

        Raises:
            RunError: the name is not that of the settings, and no alias says where it comes from.
        """
        _refuse_rename(name, inputs.settings.name, opts)
        super().__init__(BERTH, name, None, opts)
        self.inputs = inputs
        self.namespace = namespace_of(inputs.settings.name)
        self.main = None
        self.registered = {}
        manifests = inputs.manifests
        self._keeps_home = KEEPS_HOME in manifests.namespace["metadata"]["annotations"]
        # The halves of a berth depend on one another only within one stack.
        namespace: KubernetesObject | None = None
        before_pods: list[KubernetesObject] = []
        if inputs.part != "cluster":
            # The namespace stays with a home that stays.
            namespace = self._register(name, manifests.namespace, retain_on_delete=self._keeps_home)
            before_pods = self._isolation(name, namespace)
        before_pods += self._claim_templates(name, inputs, namespace)
        if namespace and not before_pods:
            before_pods = [namespace]
        if inputs.part != "isolation":
            self._register_work(name, before_pods)
        if manifests.dashboard and namespace:
            # The quota allows the load balancer.
            self._register(name, manifests.dashboard, after=before_pods)
        outputs = {"namespace": self.namespace}
        if inputs.workload.main_kind == "RayCluster":
            outputs["rayCluster"] = inputs.settings.name
        self.register_outputs(outputs)

    def _isolation(self, name: str, namespace: KubernetesObject) -> list[KubernetesObject]:
        """Register the objects of the namespace that must exist before the first pod."""
        registered = []
        for manifest in self.inputs.manifests.objects:
            # The provider replaces a claim to resize it; the claim, and its disk, stay.
            retained = manifest["kind"] == "PersistentVolumeClaim"
            own_name = f"{name}-{manifest['metadata']['name']}"
            registered.append(
                self._inside(namespace, own_name, manifest, retain_on_delete=retained)
            )
        return registered

    def _register_work(self, name: str, after: list[KubernetesObject]) -> None:
        """Register the RayCluster, RayJob or RayService, and the RayJobs on the RayCluster."""
        workload = self.inputs.workload
        manifests = self.inputs.manifests
        losses = pulumi.ResourceHookBinding(before_update=[losses_hook(name, self.inputs.pools)])
        self.main = self._register(
            name,
            manifests.main,
            after=after,
            hooks=losses,
            delete_before_replace=workload.delete_before_replace,
            replace_on_changes=list(workload.replace_on_changes),
            ignore_changes=list(workload.ignore_changes),
        )
        jobs = [
            self._register(
                job.name, manifests.jobs[job.name], after=[self.main], delete_before_replace=True
            )
            for job in self.inputs.jobs
        ]
        for resource in (self.main, *jobs):
            key = (resource.manifest["kind"], resource.manifest["metadata"]["name"])
            self.registered[key] = resource

    def _claim_templates(
        self, name: str, inputs: BerthInputs, namespace: KubernetesObject | None
    ) -> list[KubernetesObject]:
        """Register the templates of the workers' claims; an engineer's half reads the admins' ones.

        Older versions registered them with the engineer's half. The admins' half takes them over,
        and Pulumi deletes nothing that the engineer's stack only reads.
        """
        registered = []
        for template_name, claim in inputs.claims.items():
            manifest = claim_template(claim, inputs.resource_api, self.namespace, inputs.labels())
            # The object is the same in every version of the API. Without aliases another version
            # would replace it, and the deletion of the old name would delete the new object.
            versions = [
                manifest | {"apiVersion": f"resource.k8s.io/{api}"} for api in get_args(ResourceApi)
            ]
            aliases = [
                pulumi.Alias(type_=resource_type(other)) for other in versions if other != manifest
            ]
            options: dict[str, Any] = {"aliases": aliases}
            if inputs.part == "cluster":
                options["id"] = f"{self.namespace}/{template_name}"
            elif inputs.part == "isolation":
                manifest = forced(manifest)
            registered.append(
                self._inside(namespace, f"{name}-{template_name}", manifest, **options)
            )
        return registered

    def _inside(
        self, namespace: KubernetesObject | None, name: str, manifest: Manifest, **options: Any
    ) -> KubernetesObject:
        """Register an object that goes with its namespace, if the stack has the namespace.

        Ray's kinds are deleted one by one before: a namespace that still holds pods waits 16 s
        (Kubernetes 1.36, pkg/controller/namespace), and the isolation stays until the pods are
        gone.
        """
        if namespace:
            # What is inside a namespace that stays is deleted by itself.
            options |= {
                "after": [namespace],
                "deleted_with": None if self._keeps_home else namespace,
            }
        return self._register(name, manifest, **options)

    def _register(
        self,
        name: str,
        manifest: Manifest,
        *,
        after: list[KubernetesObject] | None = None,
        **options: Any,
    ) -> KubernetesObject:
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(after or []), **options)
        return KubernetesObject(name, manifest, opts)


def _refuse_rename(name: str, berth: str, opts: pulumi.ResourceOptions | None) -> None:
    """Refuse a component with another name than its berth's.

    To Pulumi a renamed component is a new one and a deleted one. Both have the same objects on the
    cluster: the new one takes them over, and the deletion of the old one then deletes them.
    """
    if name != berth and not (opts and opts.aliases):
        raise pulumi.RunError(
            f"component {name!r} is for berth {berth!r}: after a change of the component's name"
            f" Pulumi would delete the berth that it has just updated. Name it {berth!r}; if the"
            " stack has it under another name, add aliases=[pulumi.Alias(name=OTHER)] to its"
            " options"
        )
