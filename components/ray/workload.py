"""Workloads of a berth with the rules of their edits, and manifests of RayJobs and RayServices."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from berth.components.core.manifest import Manifest, forced, manifest_of, short_hash
from berth.components.core.owner import OwnerKind
from berth.components.core.types import canonical_quantity
from berth.components.isolation import RESTRICTED_CONTAINER, SERVE_PORT, cluster_spec
from berth.components.programs.lifetimes import parse_duration
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.settings import Wait
from berth.components.ray.storage.mounts import with_mounts
from berth.components.ray.workload_settings import JobWait, RayJobSettings, RayServiceSettings

RAY_CLUSTER_CONFIG = "spec.rayClusterConfig"
"""Path of the RayCluster's spec in a RayService."""

CLUSTER_CONFIG = "berth/cluster-config"
"""Annotation of a RayService's head with the fingerprint of the cluster's configuration."""

SUBMITTER = "ray-job-submitter"
"""Container whose log is the job's output."""

CODE = "/opt/berth/code"
"""Parent of the folder of a service's code in the pods, which is named after its content."""

_COPIED = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "imagePullSecrets",
    "priorityClassName",
    "securityContext",
)


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


def shared_with_kuberay(manifest: Manifest) -> Manifest:
    """Return a RayJob or RayService as applied: KubeRay writes parts of it, so edits need force."""
    return forced(as_kuberay_writes_it(manifest))


def ray_job(job: RayJobSettings, cluster: Manifest, labels: dict[str, str]) -> Manifest:
    """Return a RayJob, named after its content.

    KubeRay runs a RayJob once and ignores later edits, so an edit must create another RayJob. The
    submitter is not part of the content: an edit of an existing cluster does not run its jobs
    again.
    """
    settings, own = job.settings, job.own_cluster
    spec = manifest_of(
        __file__,
        "ray_job_spec",
        entrypoint=settings.entrypoint,
        submission_mode=settings.submission_mode,
        runtime_env=yaml.safe_dump(settings.runtime_env) if settings.runtime_env else None,
        cpus=_number(settings.entrypoint_num_cpus),
        gpus=_number(settings.entrypoint_num_gpus),
        deadline=_seconds(settings.active_deadline),
        own_cluster=_spec_for_kuberay(cluster) if own else None,
        shutdown=(own and settings.shutdown_after_job_finishes) or None,
        ttl=_seconds(settings.ttl_after_finished) if own else None,
        backoff_limit=settings.backoff_limit if own else None,
        selector=None if own else {"ray.io/cluster": cluster["metadata"]["name"]},
    )
    name = f"{job.name}-{short_hash(spec)}"
    if settings.submission_mode == "K8sJobMode":
        head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
        spec["submitterPodTemplate"] = submitter_pod(head, labels)
    place = {"namespace": cluster["metadata"]["namespace"], "labels": labels}
    return manifest_of(__file__, "ray_job", name=name, spec=spec, **place)


def ray_service(service: RayServiceSettings, cluster: Manifest) -> Manifest:
    """Return a RayService: applications of Ray Serve on a RayCluster of their own."""
    config = _spec_for_kuberay(cluster)
    head = config["headGroupSpec"]
    if service.cluster.workers_at_most:
        # The head restarts lost replicas, so that replicas on the head would be lost with it
        # (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/rayservice-high-availability.html).
        head["rayStartParams"].setdefault("num-cpus", "0")
    for part in (head, *config["workerGroupSpecs"]):
        part["template"] = with_code(part["template"], service.files)
    # Without this port KubeRay creates no Service for requests if a head lists ports (kuberay
    # v1.6.2, BuildServeService).
    head["template"]["spec"]["containers"][0]["ports"].append(
        {"name": "serve", "containerPort": SERVE_PORT}
    )
    return manifest_of(
        __file__,
        "ray_service",
        metadata=dict(cluster["metadata"]),
        serve_config=yaml.safe_dump(_on_python_path(service.settings.serve_config, service.files)),
        strategy="NewCluster" if service.settings.upgrade_strategy == "NewCluster" else "None",
        cluster=config,
    )


def folder_of(files: Mapping[str, str]) -> str:
    """Return the folder of files in the pods; each edit has its own, so that Ray sees it."""
    return f"{CODE}/{short_hash(files)}"


def with_code(template: Manifest, files: Mapping[str, str]) -> Manifest:
    """Return a pod template with the code of an application in its first container, Ray's.

    Annotations of the pods hold the code, and the kubelet mounts them as files. So an edit of the
    code is an edit of the RayCluster, and while there are two clusters each has its own version.
    """
    if not files:
        return template
    keys = {f"berth/code-{number}": name for number, name in enumerate(sorted(files))}
    notes = template["metadata"].get("annotations", {}) | {
        key: files[name] for key, name in keys.items()
    }
    items = [
        {"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}
        for key, name in keys.items()
    ]
    mount = {"name": "code", "mountPath": folder_of(files), "readOnly": True}
    with_notes = {**template, "metadata": {**template["metadata"], "annotations": notes}}
    return with_mounts(
        with_notes, [{"name": "code", "downwardAPI": {"items": items}}], [mount], new_storage=False
    )


def _on_python_path(serve_config: Mapping[str, Any], files: Mapping[str, str]) -> Manifest:
    """Return a configuration of Ray Serve whose applications find the code first."""
    config: Manifest = copy.deepcopy(dict(serve_config))
    for application in config["applications"] if files else ():
        runtime_env = application["runtime_env"] = dict(application.get("runtime_env") or {})
        variables = runtime_env["env_vars"] = dict(runtime_env.get("env_vars") or {})
        variables["PYTHONPATH"] = ":".join(
            filter(None, (folder_of(files), variables.get("PYTHONPATH")))
        )
    return config


def submitter_pod(head: dict[str, Any], labels: dict[str, str]) -> Manifest:
    """Return the template of a small pod with the image and nodes of a head, without a GPU.

    A berth's Pod Security and quotas refuse KubeRay's default.
    """
    container = head["containers"][0]
    copied = {key: head.get(key) or None for key in _COPIED}
    image, policy = container["image"], container.get("imagePullPolicy")
    own = {
        "name": SUBMITTER,
        "image": image,
        "pull_policy": policy,
        "restricted": dict(RESTRICTED_CONTAINER),
    }
    return manifest_of(__file__, "submitter", labels=labels, **copied, **own)


def as_kuberay_writes_it(manifest: Manifest) -> Manifest:
    """Return a RayJob or RayService in the form in which KubeRay writes it.

    KubeRay writes the whole object when it adds its finalizer. A field in another form then belongs
    to KubeRay: a refresh sees a change, and the next edit conflicts. Go omits empty values, adds a
    `scaleStrategy` to each group, and writes quantities in the largest unit (kuberay v1.6.2,
    ray-operator/apis/ray/v1; k8s.io/apimachinery, pkg/api/resource).
    """
    canonical: Manifest = {**manifest, "spec": _canonical(manifest["spec"])}
    for group in (cluster_spec(canonical) or {}).get("workerGroupSpecs") or []:
        group.setdefault("scaleStrategy", {})
    return canonical


def with_fingerprint(service: Manifest) -> Manifest:
    """Return a complete RayService with the fingerprint of its cluster's configuration.

    KubeRay compares clusters without numbers of workers and tolerations, and would ignore an edit
    of these (kuberay v1.6.2, ray-operator/controllers/ray/rayservice_controller.go,
    isClusterSpecHashEqual).
    """
    config = copy.deepcopy(service["spec"]["rayClusterConfig"])
    metadata = config["headGroupSpec"]["template"]["metadata"]
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        CLUSTER_CONFIG: short_hash(config),
    }
    return {**service, "spec": {**service["spec"], "rayClusterConfig": config}}


def _seconds(duration: str | None) -> int | None:
    return parse_duration(duration) if duration else None


def _spec_for_kuberay(cluster: Manifest) -> dict[str, Any]:
    """Return the spec of a RayCluster that KubeRay creates, without `upgradeStrategy`."""
    spec = copy.deepcopy(cluster_spec(cluster) or {})
    spec.pop("upgradeStrategy", None)
    return spec


# Maps of strings, which keep empty strings.
_TEXTS = ("labels", "annotations", "nodeSelector", "rayStartParams", "clusterSelector")
_QUANTITIES = ("limits", "requests")


def _canonical(value: Any, key: str = "") -> Any:
    if isinstance(value, dict) and key in _QUANTITIES:
        return {name: canonical_quantity(str(amount)) for name, amount in value.items()}
    if isinstance(value, dict) and key not in _TEXTS:
        return {
            name: _canonical(inner, name) for name, inner in value.items() if inner not in ("", [])
        }
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return canonical_quantity(value) if key == "sizeLimit" else value


def _number(value: float | None) -> float | None:
    """Return a number in the API server's form: a whole number without a fraction; None for 0."""
    return (int(value) if value == int(value) else value) if value else None
