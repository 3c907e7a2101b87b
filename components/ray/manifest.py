"""Manifest of a RayCluster: a pure function of its settings and its pools."""

import json
from typing import Any

from berth.components.core.bounds import WorkerBounds
from berth.components.core.manifest import Manifest, manifest_of, unawaited
from berth.components.fabric import (
    NVLINK,
    NcclParts,
    claim_of,
    gib_variables_command,
    joined_by_nvlink,
    nccl_parts,
)
from berth.components.gke import tolerations
from berth.components.hardware.machines import GIB
from berth.components.hardware.names import CLAIMED_GPUS, POOL_LABEL, VISIBLE_DEVICES
from berth.components.nested import NestedParts, nested_parts, with_nested_parts
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.pod_template.merging import patched
from berth.components.ray.settings import AutoscalerShape
from berth.components.ray.storage.mounts import with_home, with_volumes
from berth.components.ray.variables import Variables, entries_of, entry_of, references_of
from berth.components.sharing import Pool, Pools

RAY_HEAD, RAY_WORKER = "ray-head", "ray-worker"
"""Names of Ray's containers."""

INTERNAL_LOAD_BALANCER = {"networking.gke.io/load-balancer-type": "Internal"}
"""GKE's annotation of a Service whose load balancer has an address of the VPC; without it the
address is public
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/service-load-balancer-parameters)."""

# KubeRay 1.6's names (kuberay v1.6.2, ray-operator/apis/ray/v1/raycluster_types.go).
_AUTH_MODES = {"token": "token", "none": "disabled"}


def ray_cluster(
    settings: RayClusterSettings, pools: Pools, namespace: str, labels: dict[str, str]
) -> Manifest:
    """Return a RayCluster of one head and groups of workers.

    The templates of the workers' claims (components/fabric/claims.py) must exist before the
    RayCluster.
    """
    return manifest_of(
        __file__,
        "ray_cluster",
        name=settings.name,
        namespace=namespace,
        labels=labels,
        ray_version=settings.ray_version,
        auth=_AUTH_MODES[settings.auth],
        autoscaled=settings.autoscaled or None,
        autoscaler=_autoscaler(settings) if settings.autoscaled else None,
        fault_tolerance=_fault_tolerance(settings),
        head_counts={
            "dashboard-host": "0.0.0.0",  # noqa: S104 - in the pod
            **_head_counts(settings, pools[settings.head.pool]),
        },
        head=_head(settings, pools[settings.head.pool], labels),
        groups=[_group(settings, group, pools[group.pool], labels) for group in settings.groups],
    )


def dashboard_service(
    settings: RayClusterSettings, namespace: str, labels: dict[str, str]
) -> Manifest | None:
    """Return the load balancer of a head; None if the dashboard is private.

    KubeRay never changes the Service that it creates for the head (kuberay v1.6.2,
    reconcileHeadService), so a `serviceType` that is changed back would leave the load balancer in
    place. The port of Ray's control store (6379) stays inside the cluster.
    """
    if settings.dashboard == "private":
        return None
    internal = INTERNAL_LOAD_BALANCER if settings.dashboard == "internal" else None
    service = manifest_of(
        __file__,
        "dashboard",
        name=settings.name,
        namespace=namespace,
        labels=labels,
        annotations=internal,
    )
    return unawaited(service)


def _group(
    settings: RayClusterSettings, group: WorkerGroup, pool: Pool, labels: dict[str, str]
) -> dict[str, Any]:
    return {
        "groupName": group.name,
        **_replicas(group),
        **(_idle_timeout(group) if group.is_named else {}),
        "rayStartParams": _ray_counts(group, pool),
        **given("labels", group.labels),
        "template": _worker(settings, group, pool, labels),
    }


def _head_counts(settings: RayClusterSettings, pool: Pool) -> dict[str, str]:
    """Return the cores of a head that Ray counts, and its shares, which KubeRay would not find."""
    head = settings.head
    cpus = {} if head.ray_cpus is None else {"num-cpus": str(head.ray_cpus)}
    return cpus | ({"num-gpus": str(head.gpus)} if head.gpus and pool.shared else {})


def _fault_tolerance(settings: RayClusterSettings) -> dict[str, Any] | None:
    """Return KubeRay's options for a control store in Redis; None without one."""
    given_here = settings.gcs_fault_tolerance
    if given_here is None:
        return None
    return {
        "redisAddress": given_here.redis,
        **given("redisPassword", entry_of(given_here.password) if given_here.password else {}),
        **given("externalStorageNamespace", given_here.storage_namespace),
    }


def _autoscaler(settings: RayClusterSettings) -> dict[str, Any]:
    # The timeout of the only group is the RayCluster's.
    seconds = {} if settings.groups[0].is_named else _idle_timeout(settings.groups[0])
    amounts = settings.autoscaler.model_dump()
    # KubeRay's own amounts are left out: with them every head of a berth that exists would restart.
    resources = (
        {}
        if amounts == AutoscalerShape().model_dump()
        else {"resources": {"limits": amounts, "requests": amounts}}
    )
    return {"version": "v2", **seconds, **resources}


def _idle_timeout(group: WorkerGroup) -> dict[str, int]:
    seconds = (
        group.workers.idle_timeout_seconds if isinstance(group.workers, WorkerBounds) else None
    )
    return {} if seconds is None else {"idleTimeoutSeconds": seconds}


def _replicas(group: WorkerGroup) -> dict[str, int]:
    workers = group.workers
    if isinstance(workers, WorkerBounds):
        # Where groups come and go, the engine cannot ignore the autoscaler's number of replicas
        # (workload.py): KubeRay takes the minimum for a number that is left out.
        at_start = (
            {}
            if group.is_named and workers.at_start == workers.min
            else {"replicas": workers.at_start}
        )
        return {**at_start, "minReplicas": workers.min, "maxReplicas": workers.max}
    # With the autoscaler of another group, a maximum of 1 would let it add a worker to a group of
    # none. A RayCluster of one group has always had it.
    most = workers if group.is_named else max(workers, 1)
    return {"replicas": workers, "minReplicas": workers, "maxReplicas": most}


def _ray_counts(worker: WorkerGroup, pool: Pool) -> dict[str, str]:
    """Return the resources of a worker that Ray's scheduler counts and KubeRay would not find.

    Custom resources are a JSON object in quotes, for the shell that runs KubeRay's command line;
    Ray's autoscaler drops the first and the last character (https://github.com/ray-project/ray,
    python/ray/autoscaler/_private/kuberay/autoscaling_config.py).
    """
    counts = _ray_gpus(worker, pool)
    if worker.ray_resources:
        counts["resources"] = f"'{json.dumps(worker.ray_resources, sort_keys=True)}'"
    return counts


def _ray_gpus(worker: WorkerGroup, pool: Pool) -> dict[str, str]:
    """Return Ray's count of GPUs, if KubeRay would not find it or the settings differ.

    KubeRay counts resources whose name ends in `gpu`, and some MIG names (kuberay v1.6.2,
    ray-operator/controllers/ray/common/pod.go), but neither `nvidia.com/gpu.shared` nor claims. So
    the count is explicit for everything but whole GPUs that are counted.
    """
    if worker.ray_gpus is not None:
        return {"num-gpus": str(worker.ray_gpus)}
    if not worker.gpus or not (pool.shared or pool.settings.by_dra):
        return {}
    return {"num-gpus": str(worker.gpus)}


def _head(settings: RayClusterSettings, pool: Pool, labels: dict[str, str]) -> dict[str, Any]:
    head = settings.head
    gpus = {pool.offer.resource: str(head.gpus)} if head.gpus and pool.offer else {}
    resources = {"cpu": head.cpu, "memory": head.memory, **gpus}
    ports = manifest_of(__file__, "head_ports")
    container = {"name": RAY_HEAD, "limits": resources, "requests": dict(resources), **ports}
    template = with_home(_template(settings, container, pool, labels, head), settings.home)
    with_all = with_volumes(template, settings.volumes, settings.gcs_fuse, worker=False)
    return patched(with_all, head.pod_template)


def _worker(
    settings: RayClusterSettings, group: WorkerGroup, pool: Pool, labels: dict[str, str]
) -> dict[str, Any]:
    counted = (
        {group.gpu_resource: str(group.gpus)} if group.gpus and not pool.settings.by_dra else {}
    )
    limits = {"cpu": group.cpu_limit, "memory": group.memory, **counted}
    requests = {"cpu": group.cpu, "memory": group.memory, **counted}
    container = {"name": RAY_WORKER, "limits": limits, "requests": requests, "ports": None}
    template = _template(settings, container, pool, labels, group)
    template = patched(
        with_volumes(template, settings.volumes, settings.gcs_fuse, worker=True), group.pod_template
    )
    if group.nccl.profile != GIB:
        return template
    variables = [variable["name"] for variable in template["spec"]["containers"][0]["env"]]
    return with_nested_parts(template, NestedParts(command=[gib_variables_command(variables)]))


def _template(
    settings: RayClusterSettings,
    container: Manifest,
    pool: Pool,
    labels: dict[str, str],
    role: Head | WorkerGroup,
) -> dict[str, Any]:
    """Return the pod template of a head or worker, given fields of Ray's container."""
    claim, nccl = (
        (claim_of(role, pool), nccl_parts(role))
        if isinstance(role, WorkerGroup)
        else (None, NcclParts())
    )
    claims = {claim.name: claim.template_name} if claim else {}
    if isinstance(role, WorkerGroup) and joined_by_nvlink(role, pool):
        claims[NVLINK] = NVLINK
    template = manifest_of(
        __file__,
        "pod",
        labels=labels,
        annotations={CLAIMED_GPUS: str(claim.gpus)} if claim and claim.gpus else None,
        node_selector={POOL_LABEL: pool.name},
        tolerations=tolerations(pool.settings),
        claims_of_pod=[{"name": name, "resourceClaimTemplateName": claims[name]} for name in claims]
        or None,
        volumes=nccl.volumes or None,
        pull_secrets=[{"name": name} for name in dict.fromkeys(settings.image_pull_secrets)]
        or None,
        image=settings.image,
        env=_environment(settings, nccl.env, role),
        claims=[{"name": name} for name in claims] or None,
        mounts=nccl.mounts or None,
        **container,
    )
    return with_nested_parts(template, nested_parts(settings.nested_containers, gpus=role.gpus))


def given(key: str, value: Any) -> dict[str, Any]:
    """Return a mapping of the key to a value; empty for an empty value."""
    return {key: value} if value else {}


def _environment(
    settings: RayClusterSettings, nccl: dict[str, str], role: Head | WorkerGroup
) -> list[dict[str, Any]]:
    variables: Variables = {**nccl} | settings.env | references_of(settings.secrets) | role.env
    if settings.auth == "none":
        # KubeRay sets no mode then, and Ray 2.61 or newer requires tokens
        # (https://docs.ray.io/en/latest/ray-security).
        variables["RAY_AUTH_MODE"] = "disabled"
    if not role.gpus:
        # NVIDIA's runtime reads a missing value as "all", and a pod without GPUs would see those of
        # its node.
        variables[VISIBLE_DEVICES] = "void"
    return entries_of(variables)
