"""Manifests of a berth: pure functions of its inputs.

The component registers these manifests, and policies judge the same ones before anything is
registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from berth.components.core.manifest import Manifest
from berth.components.core.owner import KEEPS_HOME, OwnerKind, namespace_of, owner_labels
from berth.components.fabric import NVLINK, WorkerClaim, claim_of, compute_domain, joined_by_nvlink
from berth.components.hardware.names import NVLINK_CHANNEL, ResourceApi
from berth.components.isolation import (
    Isolation,
    IsolationInputs,
    IsolationSettings,
    access_binding,
    harden,
    isolate,
    owner_role,
)
from berth.components.lifecycle import keeper_access, keeper_peers
from berth.components.nested import programs_config_map
from berth.components.operators import KubeRaySettings
from berth.components.ray import (
    RayClusterSettings,
    RayJobSettings,
    Workload,
    dashboard_service,
    disk_of_a_container,
    has_storage_that_stays,
    home_claim,
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
    created: bool = False
    """Whether berth creates the cluster, with StorageClasses for its network and disks of a known
    size."""

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
    def has_nvlink_domain(self) -> bool:
        """Whether NVLink joins workers on several nodes."""
        return any(
            joined_by_nvlink(group, self.pools[group.pool]) for group in self.settings.groups
        )

    def on_api(self, resource_api: ResourceApi) -> BerthInputs:
        """Return the inputs for a cluster that serves a version of resource.k8s.io."""
        if resource_api == self.resource_api:
            return self
        return replace(self, resource_api=resource_api)

    def labels(self, kind: OwnerKind | None = None, name: str = "") -> dict[str, str]:
        """Return the labels of the berth's objects, or of a job on the berth."""
        return owner_labels(
            self.environment, self.stack, kind or self.workload.kind, name or self.settings.name
        )


def berth_manifests(inputs: BerthInputs) -> BerthManifests:
    """Return the manifests that a berth registers."""
    settings = inputs.settings
    labels = inputs.labels()
    namespace = namespace_of(settings.name)
    cluster = ray_cluster(settings, inputs.pools, namespace, labels)
    main = inputs.workload.main(cluster, labels)
    jobs = {job.name: ray_job(job, cluster, inputs.labels("job", job.name)) for job in inputs.jobs}
    dashboard = dashboard_service(settings, namespace, labels)
    dashboards = [dashboard] if dashboard else []
    volumes = _volume_claims(inputs)
    from_google = secret_objects(settings.secrets, inputs.project, namespace, labels)
    isolation = isolate(
        _isolation_inputs(inputs), [main, *jobs.values(), *dashboards, *volumes, *from_google]
    )
    objects = [*isolation.objects, *keeper_access(cluster, settings.lifecycle)]
    programs = programs_config_map(settings.nested_containers, namespace, labels)
    if programs:
        objects.append(programs)
    objects += [*volumes, *from_google]
    if inputs.has_nvlink_domain:
        objects.append(compute_domain(namespace, labels))
    objects += _for_owner(inputs)
    return BerthManifests(
        namespace=_namespace(inputs, isolation),
        objects=objects,
        main=inputs.workload.applied(_hardened(main, inputs)),
        jobs={name: shared_with_kuberay(_hardened(job, inputs)) for name, job in jobs.items()},
        dashboard=dashboard,
    )


def _volume_claims(inputs: BerthInputs) -> list[Manifest]:
    """Return the claims of the berth's home and of its shares."""
    settings = inputs.settings
    labels = inputs.labels()
    namespace = namespace_of(settings.name)
    claims = share_claims(settings.volumes, namespace, labels, own_classes=inputs.created)
    home = home_claim(settings.home, namespace, labels)
    return [home, *claims] if home else list(claims)


def _isolation_inputs(inputs: BerthInputs) -> IsolationInputs:
    settings = inputs.settings
    devices = {name: claim.devices for name, claim in inputs.claims.items()}
    devices[NVLINK] = {NVLINK_CHANNEL: 1}
    return IsolationInputs(
        inputs.isolation,
        inputs.kuberay,
        settings.access,
        settings.priority,
        {pool.offer.resource for pool in inputs.pools.values() if pool.offer},
        devices=devices,
        clients=inputs.workload.clients,
        disk=disk_of_a_container(
            inputs.isolation.ephemeral_storage,
            settings,
            inputs.pools,
            created=inputs.created,
        ),
        callers=keeper_peers(settings.lifecycle),
    )


def _hardened(manifest: Manifest, inputs: BerthInputs) -> Manifest:
    return harden(manifest, inputs.isolation.pod_security, inputs.settings.priority)


def _namespace(inputs: BerthInputs, isolation: Isolation) -> Manifest:
    settings = inputs.settings
    annotations = isolation.namespace_annotations | settings.lifecycle.annotations()
    if has_storage_that_stays(settings.home, settings.volumes):
        annotations[KEEPS_HOME] = "true"
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace_of(settings.name),
            "labels": inputs.labels() | isolation.namespace_labels,
            "annotations": annotations,
        },
    }


def _for_owner(inputs: BerthInputs) -> list[Manifest]:
    """Return what the owner of the other half needs: a Role, and the environment's contract."""
    if inputs.part != "isolation":
        return []
    labels = inputs.labels()
    namespace = namespace_of(inputs.settings.name)
    contract = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONTRACT, "namespace": namespace, "labels": labels},
        "data": {"environment": inputs.contract},
    }
    role = owner_role(namespace, labels, CONTRACT)
    return [contract, role, access_binding(role, inputs.settings.access)]
