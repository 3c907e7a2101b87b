"""Observation of a fleet: what the API server has of an environment, as a `Fleet`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.components.cluster.api import (
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterError,
    Object,
    Reader,
)
from berth.components.cluster.demand import (
    claimed_gpus_of,
    gpus_in,
    gpus_of_pod,
    gpus_of_ray_cluster,
)
from berth.components.cluster.inventory import NOTHING, Device, Inventory
from berth.components.cluster.nodes import is_ready
from berth.components.cluster.object_fields import ObjectKey, key_of, labels_of
from berth.components.cluster.owned import Owners, owners_of
from berth.components.cluster.pods import why_not_ready
from berth.components.cluster.ray_manifest import RayGroup, pool_of, replicas_of, worker_groups
from berth.components.core.owner import OWNER_LABELS, STACK_LABEL
from berth.components.hardware.names import POOL_LABEL
from berth.components.isolation import SERVE_PORT
from berth.components.lifecycle import life_of
from berth.components.ray.live.cluster_condition import condition_of
from berth.components.ray.live.fleet import (
    Fleet,
    LiveGroup,
    LiveJob,
    LivePool,
    LiveRayCluster,
    LiveService,
)
from berth.components.ray.live.job_condition import job_condition
from berth.components.ray.live.live_objects import LiveObjects
from berth.components.ray.live.nodes import nodes_of
from berth.components.ray.live.reasons import reasons_of, reasons_of_job, reasons_of_service
from berth.components.ray.live.restarts import Restart, restarts_of
from berth.components.ray.live.service_condition import service_condition
from berth.components.sharing import Pool


@dataclass(frozen=True)
class _ClusterObjects:
    """Objects of a cluster that several parts of its fleet need."""

    live: LiveObjects
    nodes: Sequence[Object]
    pods: Sequence[Object]
    """Pods that have not ended."""
    ray_clusters: Sequence[Object]
    """RayClusters of the environment's berths, with the labels of their owners."""
    inventory: Inventory | None
    """Devices that nodes publish for claims; None without the right to see them."""


def observed_fleet(
    reader: Reader,
    stack: str,
    environment: str,
    pools: Iterable[Pool],
    report: Callable[[str], None],
) -> Fleet:
    """Return the fleet of an environment.

    Args:
        reader: source of the cluster's objects.
        stack: stack that the fleet is shown for.
        environment: name of the environment.
        pools: its pools, by the settings.
        report: called with what could not be observed.

    Raises:
        ClusterError: the API server does not answer, or refuses more than the sight of devices.
    """
    pools = list(pools)
    live = LiveObjects(reader)
    all_owners = owners_of(reader)
    owners = all_owners.of_environment(environment)
    cluster = _ClusterObjects(
        live=live,
        nodes=reader.list(NODES)[0],
        pods=[pod for pod in reader.list(PODS)[0] if not _has_ended(pod)],
        ray_clusters=owners.owned_objects(reader.list(RAY_CLUSTERS)[0]),
        inventory=_inventory(live, pools, report),
    )
    return Fleet(
        stack=stack,
        environment=environment,
        pools=[_live_pool(pool, cluster) for pool in pools],
        berths=_live_ray_clusters(cluster, OWNER_LABELS["engineer"]),
        clusters=_live_ray_clusters(cluster, OWNER_LABELS["cluster"]),
        jobs=_live_jobs(reader, live, owners),
        services=_live_services(reader, live, owners),
        nodes=nodes_of(
            [pool.name for pool in pools],
            cluster.nodes,
            all_owners.labeled(cluster.pods),
            cluster.inventory,
        ),
    )


def _has_ended(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _inventory(
    live: LiveObjects, pools: Iterable[Pool], report: Callable[[str], None]
) -> Inventory | None:
    """Return the devices that nodes publish for claims; None without the right to see them."""
    if not any(pool.settings.nics or pool.settings.by_dra for pool in pools):
        return NOTHING
    try:
        return live.inventory
    except ClusterError as error:
        report(f"NICs and claimed GPUs are not shown: {error}")
        return None


def _live_pool(pool: Pool, cluster: _ClusterObjects) -> LivePool:
    nodes = [node for node in cluster.nodes if labels_of(node).get(POOL_LABEL) == pool.name]
    names = {node["metadata"]["name"] for node in nodes}
    inventory = cluster.inventory or NOTHING
    holders = inventory.holders
    published = [device for device in inventory.devices if device.node in names]
    held = [device for device in published if device.key in holders]
    return LivePool(
        name=pool.name,
        machine_type=pool.settings.machine_type,
        nodes=len(nodes),
        nodes_at_least=pool.settings.nodes_at_least,
        nodes_ready=sum(map(is_ready, nodes)),
        gpus=_allocatable_gpus(nodes) + _gpus_among(published),
        gpus_in_use=_counted_gpus(cluster.pods, names) + _gpus_among(held),
        nics=_nics_among(published),
        nics_in_use=_nics_among(held),
        nics_of_machines=len(nodes) * pool.settings.nics if cluster.inventory else 0,
        sharing=pool.sharing,
        unit=pool.unit,
        gpu_unit=pool.gpu_unit,
    )


def _allocatable_gpus(nodes: Iterable[Object]) -> int:
    return sum(gpus_in(node["status"].get("allocatable") or {}) for node in nodes)


def _counted_gpus(pods: Iterable[Object], nodes: set[str]) -> int:
    """Return the GPUs that pods on some nodes have without claims."""
    placed = [pod for pod in pods if pod["spec"].get("nodeName") in nodes]
    return sum(gpus_of_pod(pod) - claimed_gpus_of(pod) for pod in placed)


def _gpus_among(devices: Iterable[Device]) -> int:
    return sum(device.is_gpu for device in devices)


def _nics_among(devices: Iterable[Device]) -> int:
    return sum(device.is_nic for device in devices)


def _nics_held(inventory: Inventory) -> Counter[str]:
    """Return the number of RDMA NICs that claims hold, by namespace."""
    nics = {device.key for device in inventory.devices if device.is_nic}
    held: Counter[str] = Counter()
    for claim in inventory.claims:
        held[claim.namespace] += len(nics & claim.held.keys())
    return held


def _live_ray_clusters(cluster: _ClusterObjects, owner_label: str) -> list[LiveRayCluster]:
    """Return the RayClusters that have the name of an owner of one kind.

    RayClusters of RayJobs in a berth have other names.
    """
    nics = _nics_held(cluster.inventory or NOTHING)
    return [
        _live_ray_cluster(cluster, ray_cluster, owner_label, nics)
        for ray_cluster in cluster.ray_clusters
        if labels_of(ray_cluster).get(owner_label) == ray_cluster["metadata"]["name"]
    ]


def _live_ray_cluster(
    cluster: _ClusterObjects, ray_cluster: Object, owner_label: str, nics: Mapping[str, int]
) -> LiveRayCluster:
    metadata = ray_cluster["metadata"]
    condition = condition_of(ray_cluster)
    key = key_of(ray_cluster)
    reasons = [] if condition.ready else reasons_of(cluster.live, key)
    return LiveRayCluster(
        name=metadata["labels"][owner_label],
        namespace=metadata["namespace"],
        ray_cluster=metadata["name"],
        stack=metadata["labels"][STACK_LABEL],
        pool=_pools_of(worker_groups(ray_cluster)),
        state=condition.state,
        ready=condition.ready,
        workers_ready=condition.workers_ready,
        workers_desired=condition.workers_desired,
        gpus=gpus_of_ray_cluster(ray_cluster),
        nics=nics.get(metadata["namespace"], 0),
        reasons=reasons,
        life=life_of(ray_cluster),
        groups=live_groups(ray_cluster, cluster.pods, suspended=condition.state == "suspended"),
        restarts=live_restarts(cluster.live, key),
    )


def live_restarts(live: LiveObjects, key: ObjectKey) -> list[Restart]:
    """Return the recent restarts of pods of a RayCluster, the newest first."""
    now = datetime.now(UTC)
    return restarts_of(live.pods[key], live.replacements[key], live.pod_events(key), now)


def live_groups(ray_cluster: Object, pods: Iterable[Object], *, suspended: bool) -> list[LiveGroup]:
    """Return the groups of a RayCluster, with the ready workers among some pods."""
    ready: Counter[str] = Counter()
    for pod in pods:
        if _is_of(pod, ray_cluster) and why_not_ready(pod) is None:
            ready[labels_of(pod).get("ray.io/group", "")] += 1
    return [
        LiveGroup(
            name=group["groupName"],
            pool=pool_of(group),
            workers_ready=ready[group["groupName"]],
            workers_desired=0 if suspended else replicas_of(group),
            gpus=replicas_of(group) * gpus_of_pod(group["template"]),
        )
        for group in worker_groups(ray_cluster)
    ]


def _is_of(pod: Object, ray_cluster: Object) -> bool:
    of_pod = (pod["metadata"]["namespace"], labels_of(pod).get("ray.io/cluster"))
    return of_pod == key_of(ray_cluster)


def _pools_of(groups: Iterable[RayGroup]) -> str:
    return ", ".join(dict.fromkeys(map(pool_of, groups)))


def _live_jobs(reader: Reader, live: LiveObjects, owners: Owners) -> list[LiveJob]:
    """Return the jobs of the settings: in berths of their own, or on somebody's RayCluster."""
    label = OWNER_LABELS["job"]
    jobs = []
    for job in reader.list(RAY_JOBS, labelSelector=label)[0]:
        owner = owners.owner_of(job)
        name = job["metadata"]["labels"][label]
        # Only the namespace's own job has its name there.
        if owner and (owner.kind != "job" or owner.name == name):
            jobs.append(_live_job(live, job, name, owner.stack))
    return jobs


def _live_job(live: LiveObjects, job: Object, name: str, stack: str) -> LiveJob:
    metadata = job["metadata"]
    condition = job_condition(job)
    ready = condition.running or condition.succeeded
    return LiveJob(
        name=name,
        namespace=metadata["namespace"],
        ray_job=metadata["name"],
        ray_cluster=condition.ray_cluster,
        stack=stack,
        state=condition.state or "New",
        ready=ready,
        created=str(metadata.get("creationTimestamp") or ""),
        ended=str((job.get("status") or {}).get("endTime") or ""),
        reasons=[] if ready else reasons_of_job(live, key_of(job)),
    )


def _live_services(reader: Reader, live: LiveObjects, owners: Owners) -> list[LiveService]:
    """Return the RayServices that have the name of their owner."""
    return [
        _live_service(live, service)
        for service in owners.owned_objects(reader.list(RAY_SERVICES)[0])
        if labels_of(service).get(OWNER_LABELS["service"]) == service["metadata"]["name"]
    ]


def _live_service(live: LiveObjects, service: Object) -> LiveService:
    metadata = service["metadata"]
    condition = service_condition(service)
    ray_clusters = []
    for name in condition.ray_clusters:
        ray_cluster = live.find(RAY_CLUSTERS, (metadata["namespace"], name))
        if ray_cluster is not None:
            ray_clusters.append(ray_cluster)
    of_clusters = [condition_of(ray_cluster) for ray_cluster in ray_clusters]
    return LiveService(
        name=metadata["labels"][OWNER_LABELS["service"]],
        namespace=metadata["namespace"],
        stack=metadata["labels"][STACK_LABEL],
        pool=_pools_of(service["spec"]["rayClusterConfig"]["workerGroupSpecs"]),
        state=condition.state,
        ready=condition.ready,
        applications_running=condition.running,
        applications=condition.applications,
        serving=condition.serving,
        workers_ready=sum(one.workers_ready for one in of_clusters),
        workers_desired=sum(one.workers_desired for one in of_clusters),
        gpus=sum(map(gpus_of_ray_cluster, ray_clusters)),
        address=f"http://{metadata['name']}-serve-svc.{metadata['namespace']}:{SERVE_PORT}",
        created=str(metadata.get("creationTimestamp") or ""),
        reasons=[] if condition.ready else reasons_of_service(live, key_of(service)),
    )
