"""Workloads of a berth: each one knows its main object, how an edit reaches the object, and its goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from berth.components.core.bounds import Bounds
from berth.components.core.manifest import Manifest, forced
from berth.components.core.owner import OwnerKind
from berth.components.ray.settings import RayClusterSettings, Wait
from berth.components.ray.workload_settings import JobWait, RayJobSettings, RayServiceSettings
from berth.components.ray.workloads import as_kuberay_writes_it, ray_job, ray_service, with_fingerprint

RAY_CLUSTER_CONFIG = "spec.rayClusterConfig"
"""Path of the RayCluster's spec in a RayService."""


@dataclass(frozen=True)
class EditRules:
    """Rules by which Pulumi applies an edit of an object.

    Attributes:
        delete_before_replace: delete the old object before its replacement is created.
        replace_on_changes: paths whose change replaces the object.
        ignore_changes: paths whose change is ignored.
    """

    delete_before_replace: bool | None = None
    replace_on_changes: Sequence[str] = ()
    ignore_changes: Sequence[str] = ()


class Workload(Protocol):
    """Workload of a berth."""

    @property
    def settings(self) -> RayClusterSettings:
        """Settings of the RayCluster."""

    @property
    def kind(self) -> OwnerKind:
        """Kind of owner."""

    @property
    def main_kind(self) -> Literal["RayCluster", "RayJob", "RayService"]:
        """Kubernetes kind of the main object."""

    @property
    def wait(self) -> Wait | JobWait:
        """Goal of `pulumi up`."""

    @property
    def clients(self) -> Sequence[str]:
        """Namespaces whose pods may send requests to Ray Serve."""

    @property
    def edits(self) -> EditRules:
        """Rules by which Pulumi applies an edit of the main object."""

    def main(self, cluster: Manifest, labels: dict[str, str]) -> Manifest:
        """Return the main object, given the manifest of the RayCluster."""

    def applied(self, manifest: Manifest) -> Manifest:
        """Return the hardened main object as it is applied."""


@dataclass(frozen=True)
class ClusterWorkload:
    """RayCluster of an engineer, or a named one."""

    settings: RayClusterSettings
    kind: OwnerKind = "engineer"
    main_kind: Literal["RayCluster"] = "RayCluster"
    clients: Sequence[str] = ()

    @property
    def wait(self) -> Wait:
        """Goal of `pulumi up`."""
        return self.settings.wait

    @property
    def edits(self) -> EditRules:
        """Rules by which Pulumi applies an edit; Ray's autoscaler owns the number of replicas.

        With an edit of another field Pulumi applies its own number too. That ends no worker: KubeRay leaves the number
        to the autoscaler, which sets it again (kuberay v1.6.2, ray-operator/controllers/ray/raycluster_controller.go).
        """
        return EditRules(ignore_changes=["spec.workerGroupSpecs[*].replicas"] if self._autoscaled else ())

    def main(self, cluster: Manifest, _labels: dict[str, str]) -> Manifest:
        """Return the RayCluster."""
        return cluster

    def applied(self, manifest: Manifest) -> Manifest:
        """Return the RayCluster as it is applied.

        The API server treats the worker groups as one value, which belongs to the autoscaler once it has set a number:
        without force every later edit would conflict. Two stacks with one berth still conflict on the namespace.
        """
        return forced(manifest) if self._autoscaled else manifest

    @property
    def _autoscaled(self) -> bool:
        return isinstance(self.settings.workers, Bounds)


@dataclass(frozen=True)
class JobWorkload:
    """RayJob with a RayCluster of its own."""

    job: RayJobSettings
    kind: OwnerKind = "job"
    main_kind: Literal["RayJob"] = "RayJob"
    clients: Sequence[str] = ()
    # The next job needs the room of the last one.
    edits: EditRules = EditRules(delete_before_replace=True)

    @property
    def settings(self) -> RayClusterSettings:
        """Settings of the RayCluster."""
        return self.job.cluster

    @property
    def wait(self) -> JobWait:
        """Goal of `pulumi up`."""
        return self.job.wait

    def main(self, cluster: Manifest, labels: dict[str, str]) -> Manifest:
        """Return the RayJob."""
        return ray_job(self.job, cluster, labels)

    def applied(self, manifest: Manifest) -> Manifest:
        """Return the RayJob as it is applied: KubeRay writes parts of it, so edits need force."""
        return forced(as_kuberay_writes_it(manifest))


@dataclass(frozen=True)
class ServiceWorkload:
    """RayService with a RayCluster of its own."""

    service: RayServiceSettings
    kind: OwnerKind = "service"
    main_kind: Literal["RayService"] = "RayService"

    @property
    def settings(self) -> RayClusterSettings:
        """Settings of the RayCluster."""
        return self.service.cluster

    @property
    def wait(self) -> Wait:
        """Goal of `pulumi up`."""
        return self.settings.wait

    @property
    def clients(self) -> Sequence[str]:
        """Namespaces whose pods may send requests to Ray Serve."""
        return self.service.clients

    @property
    def edits(self) -> EditRules:
        """Rules by which Pulumi applies an edit: a replacement needs the room of the old cluster."""
        recreate = self.service.upgrade_strategy == "Recreate"
        return EditRules(delete_before_replace=True, replace_on_changes=[RAY_CLUSTER_CONFIG] if recreate else ())

    def main(self, cluster: Manifest, _labels: dict[str, str]) -> Manifest:
        """Return the RayService."""
        return ray_service(self.service, cluster)

    def applied(self, manifest: Manifest) -> Manifest:
        """Return the RayService as it is applied: KubeRay writes parts of it, so edits need force."""
        return forced(as_kuberay_writes_it(with_fingerprint(manifest)))
