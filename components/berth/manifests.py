"""Manifests of a berth: pure functions of its inputs.

The component registers these manifests, and policies judge the same ones before anything is
registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from berth.components.core.manifest import Manifest, manifest_of
from berth.components.core.owner import KEEPS_HOME, OwnerKind, namespace_of, owner_labels
from berth.components.fabric import NVLINK, WorkerClaim, claim_of, compute_domain, joined_by_nvlink
from berth.components.hardware.names import NVLINK_CHANNEL, ResourceApi
from berth.components.isolation import (
    OWNER,
    IsolationInputs,
    IsolationSettings,
    harden,
    isolate,
    owner_role,
    role_binding,
)
from berth.components.lifecycle import keeper_access, keeper_peers
from berth.components.nested import programs_config_map
from berth.components.operators import KubeRaySettings
from berth.components.ray import (
    RayClusterSettings,
    RayJobSettings,
    Workload,
    dashboard_service,
    home_claim,
    keeps,
    ray_cluster,
    ray_job,
    secret_objects,
    share_claims,
    shared_with_kuberay,
)
from berth.components.sharing import Pools

CONTRACT = "berth-environment"
"""ConfigMap of a berth with its environment's contract, for an owner without the state."""


@dataclass(frozen=True)
class BerthManifests:
    """Manifests of a berth, without the template of claims, which depends on the served API."""

    namespace: Manifest
    objects: Sequence[Manifest]
    """Objects of the namespace that must exist before the first pod."""
    main: Manifest
    """The RayCluster, or the RayJob or RayService that has KubeRay create it."""
    jobs: dict[str, Manifest]
    """RayJobs on the RayCluster, by name."""
    dashboard: Manifest | None
    """The load balancer of the head; None if the head is private."""


@dataclass(frozen=True)
class BerthInputs:
    """Inputs of a berth."""

    workload: Workload
    pools: Pools
    environment: str
    stack: str
    """Stack that registers the berth: the environment's or the engineer's."""
    resource_api: ResourceApi = "v1"
    """Version of resource.k8s.io for claim templates."""
    isolation: IsolationSettings = field(default_factory=IsolationSettings)
    """Isolation that the environment loosens for all of its berths."""
    kuberay: KubeRaySettings = field(default_factory=KubeRaySettings)
    """Source and namespace of the KubeRay operator."""
    jobs: Sequence[RayJobSettings] = ()
    part: Literal["isolation", "cluster"] | None = None
    """Half of the berth that the stack creates; None for both."""
    contract: str = ""
    """The environment's contract as JSON, for the owner of the other half."""
    project: str | None = None
    """Google Cloud project of the environment; None on an existing cluster."""
    own_classes: bool = False
    """Whether the environment has StorageClasses for the network of its cluster."""

    @property
    def settings(self) -> RayClusterSettings:
        """Settings of the RayCluster."""
        return self.workload.settings

    @cached_property
    def manifests(self) -> BerthManifests:
        """Manifests that the berth registers, built at the first use."""
        return berth_manifests(self)

    @property
    def claims(self) -> dict[str, WorkerClaim]:
        """Claims of the workers by the name of their template, one for all groups with the same."""
        claims = [claim_of(group, self.pools[group.pool]) for group in self.settings.groups]
        return {claim.template_name: claim for claim in claims if claim}

    @property
    def joined(self) -> bool:
        """Whether NVLink joins workers on several nodes."""
        return any(
            joined_by_nvlink(group, self.pools[group.pool]) for group in self.settings.groups
        )

    def on_api(self, resource_api: ResourceApi) -> BerthInputs:
        """Return the inputs for a cluster that serves a version of resource.k8s.io."""
        return (
            self if resource_api == self.resource_api else replace(self, resource_api=resource_api)
        )

    def labels(self, kind: OwnerKind | None = None, name: str = "") -> dict[str, str]:
        """Return the labels of the berth's objects, or of a job on the berth."""
        return owner_labels(
            self.environment, self.stack, kind or self.workload.kind, name or self.settings.name
        )


def berth_manifests(inputs: BerthInputs) -> BerthManifests:
    """Return the manifests that a berth registers."""
    settings, labels, namespace = (
        inputs.settings,
        inputs.labels(),
        namespace_of(inputs.settings.name),
    )
    cluster = ray_cluster(settings, inputs.pools, namespace, labels)
    main = inputs.workload.main(cluster, labels)
    jobs = {job.name: ray_job(job, cluster, inputs.labels("job", job.name)) for job in inputs.jobs}
    dashboard = dashboard_service(settings, namespace, labels)
    home = home_claim(settings.home, namespace, labels)
    shares = share_claims(settings.volumes, namespace, labels, own_classes=inputs.own_classes)
    claims = [*([home] if home else []), *shares]
    from_google = secret_objects(settings.secrets, inputs.project, namespace, labels)
    marks = {KEEPS_HOME: "true"} if keeps(settings.home, settings.volumes) else {}
    isolation = isolate(
        IsolationInputs(
            inputs.isolation,
            inputs.kuberay,
            settings.access,
            settings.priority,
            {pool.offer.resource for pool in inputs.pools.values() if pool.offer},
            devices={name: claim.devices for name, claim in inputs.claims.items()}
            | {NVLINK: {NVLINK_CHANNEL: 1}},
            clients=inputs.workload.clients,
            callers=keeper_peers(settings.lifecycle),
        ),
        [main, *jobs.values(), *([dashboard] if dashboard else []), *claims, *from_google],
    )
    keeper = keeper_access(cluster, settings.lifecycle)
    programs = programs_config_map(settings.nested_containers, namespace, labels)
    hardened = {
        name: harden(job, inputs.isolation.pod_security, settings.priority)
        for name, job in jobs.items()
    }
    return BerthManifests(
        namespace=manifest_of(
            __file__,
            "namespace",
            name=namespace,
            labels=labels | isolation.namespace_labels,
            annotations=isolation.namespace_annotations | settings.lifecycle.annotations() | marks,
        ),
        objects=[
            *isolation.objects,
            *keeper,
            *([programs] if programs else []),
            *claims,
            *from_google,
            *([compute_domain(namespace, labels)] if inputs.joined else []),
            *_for_owner(inputs),
        ],
        main=inputs.workload.applied(
            harden(main, inputs.isolation.pod_security, settings.priority)
        ),
        jobs={name: shared_with_kuberay(job) for name, job in hardened.items()},
        dashboard=dashboard,
    )


def _for_owner(inputs: BerthInputs) -> list[Manifest]:
    """Return what the owner of the other half needs: a Role, and the environment's contract."""
    if inputs.part != "isolation":
        return []
    labels, namespace = inputs.labels(), namespace_of(inputs.settings.name)
    facts = {
        "name": CONTRACT,
        "namespace": namespace,
        "labels": labels,
        "environment": inputs.contract,
    }
    return [
        manifest_of(__file__, "contract", **facts),
        owner_role(namespace, labels, CONTRACT),
        role_binding(namespace, labels, inputs.settings.access, OWNER),
    ]
