"""Workloads of a berth: the main object of a RayCluster, job or service, and its edits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from berth.components.core.manifest import Manifest, forced
from berth.components.core.owner import OwnerKind
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.job_settings import JobWait, RayJobSettings
from berth.components.ray.jobs import ray_job
from berth.components.ray.kuberay_form import shared_with_kuberay
from berth.components.ray.service_settings import RayServiceSettings
from berth.components.ray.services import RAY_CLUSTER_CONFIG, ray_service, with_fingerprint
from berth.components.ray.settings import Wait


@dataclass(frozen=True)
class Workload:
    """Workload of a berth."""

    kind: OwnerKind
    settings: RayClusterSettings
    main_kind: Literal["RayCluster", "RayJob", "RayService"]
    wait: Wait | JobWait
    main: Callable[[Manifest, dict[str, str]], Manifest]
    """Returns the main object, given the RayCluster's manifest and labels."""
    applied: Callable[[Manifest], Manifest]
    """Returns the hardened main object as it is applied."""
    clients: Sequence[str] = ()
    """Namespaces whose pods may send requests to Ray Serve."""
    delete_before_replace: bool | None = None
    replace_on_changes: Sequence[str] = ()
    ignore_changes: Sequence[str] = ()


def cluster_workload(
    settings: RayClusterSettings, kind: Literal["engineer", "cluster"] = "engineer"
) -> Workload:
    """Return the RayCluster of an engineer, or a named one.

    Ray's autoscaler owns the number of replicas. The engine can ignore it only where no group comes
    or goes (pulumi 3.250.0, sdk/go/common/resource/properties_path.go, reset), so named groups
    leave it out (manifest.py). The API server treats the worker groups as one value, which belongs
    to the autoscaler once it has set a number, so later edits need force; two stacks with one berth
    still conflict on the namespace. An edit of another field also applies Pulumi's number. That
    ends no worker: KubeRay leaves the number to the autoscaler, which sets it again (kuberay
    v1.6.2, ray-operator/controllers/ray/raycluster_controller.go).
    """
    ignored = settings.autoscaled and not settings.groups[0].is_named
    return Workload(
        kind=kind,
        settings=settings,
        main_kind="RayCluster",
        wait=settings.wait,
        main=lambda cluster, _labels: cluster,
        applied=forced if settings.autoscaled else lambda manifest: manifest,
        ignore_changes=["spec.workerGroupSpecs[*].replicas"] if ignored else (),
    )


def job_workload(job: RayJobSettings) -> Workload:
    """Return a RayJob with a RayCluster of its own; the next job needs the room of the last one."""
    return Workload(
        kind="job",
        settings=job.cluster,
        main_kind="RayJob",
        wait=job.wait,
        main=lambda cluster, labels: ray_job(job, cluster, labels),
        applied=shared_with_kuberay,
        delete_before_replace=True,
    )


def service_workload(service: RayServiceSettings) -> Workload:
    """Return a RayService with its own RayCluster; a replacement needs the old one's room."""
    replacing = [RAY_CLUSTER_CONFIG] if service.settings.upgrade_strategy == "Recreate" else []
    return Workload(
        kind="service",
        settings=service.cluster,
        main_kind="RayService",
        wait=service.cluster.wait,
        main=lambda cluster, _labels: ray_service(service, cluster),
        applied=lambda manifest: shared_with_kuberay(with_fingerprint(manifest)),
        delete_before_replace=True,
        replace_on_changes=replacing,
        clients=service.settings.clients,
    )
