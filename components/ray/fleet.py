"""Live fleet of an environment: node pools, RayClusters, RayJobs and RayServices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic.alias_generators import to_camel

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
    replicas_of,
)
from berth.components.cluster.inventory import NOTHING, Inventory
from berth.components.cluster.owned import Owners, owners_of
from berth.components.cluster.pods import is_ready, why_not_ready
from berth.components.core.owner import OWNER_LABELS, STACK_LABEL, OwnerKind
from berth.components.core.words import counted
from berth.components.hardware.names import POOL_LABEL
from berth.components.isolation import SERVE_PORT
from berth.components.lifecycle import Life, life_of
from berth.components.ray.conditions.cluster import condition_of
from berth.components.ray.conditions.job import job_condition
from berth.components.ray.conditions.service import service_condition
from berth.components.ray.nodes import Node, nodes_of
from berth.components.ray.reasons import (
    Evidence,
    key_of,
    reasons_of,
    reasons_of_job,
    reasons_of_service,
)
from berth.components.sharing import Pool as OfferedPool

WHOLE = "GPU"
"""Noun for a GPU that is not shared."""


@dataclass(frozen=True)
class Pool:
    """A node pool."""

    name: str
    machine_type: str
    nodes: int
    nodes_at_least: int
    """Number of nodes that it always has, by its settings."""
    nodes_ready: int
    gpus: int
    """GPUs, or shares of them, that the nodes offer to pods."""
    gpus_in_use: int
    """GPUs that pods on the nodes hold."""
    nics: int
    """RDMA NICs that the nodes publish for claims."""
    nics_in_use: int
    """RDMA NICs that claims hold."""
    nics_of_machines: int
    """RDMA NICs that the nodes should publish, by the pool's settings."""
    sharing: str
    """How GPUs are shared; "" for whole GPUs."""
    unit: str
    """Noun for what `gpus` and its pods' requests count: `GPU`, `share`."""


@dataclass(frozen=True)
class Group:
    """A group of workers of a berth or a named cluster."""

    name: str
    pool: str
    workers_ready: int
    workers_desired: int
    gpus: int
    """GPUs, or shares of them, that its workers request."""


@dataclass(frozen=True)
class Ray:
    """A berth or a named cluster."""

    name: str
    """The engineer's id or the cluster's name."""
    namespace: str
    ray_cluster: str
    stack: str
    pool: str
    """Node pool of its workers, or several with commas."""
    state: str
    ready: bool
    """Head and all workers are ready, or it is suspended."""
    workers_ready: int
    workers_desired: int
    gpus: int
    nics: int
    """RDMA NICs that its workers hold."""
    reasons: list[str]
    life: Life
    groups: list[Group]


@dataclass(frozen=True)
class Job:
    """A RayJob."""

    name: str
    """The job's name in the settings."""
    namespace: str
    ray_job: str
    """Its name in the cluster, which depends on its content."""
    ray_cluster: str
    """The RayCluster that it runs on; "" before that is known."""
    stack: str
    state: str
    """Ray's state, or KubeRay's before Ray has the job."""
    ready: bool
    """It runs, or has succeeded."""
    created: str
    ended: str
    reasons: list[str]


@dataclass(frozen=True)
class Service:
    """A RayService."""

    name: str
    namespace: str
    stack: str
    pool: str
    state: str
    """`ready`, `upgrading`, `serving` (not all applications run), or `starting`."""
    ready: bool
    """The newest edit serves."""
    applications_running: int
    applications: int
    serving: int
    """Number of pods that answer requests."""
    workers_ready: int
    """Number of ready workers in its RayClusters."""
    workers_desired: int
    gpus: int
    address: str
    """Address for requests from pods."""
    created: str
    reasons: list[str]


@dataclass(frozen=True)
class Missing:
    """Owner that the environment's stack declares, and that has no object on the cluster."""

    kind: OwnerKind
    name: str


@dataclass(frozen=True)
class Fleet:
    """Live objects of one environment, and declared ones that are missing."""

    stack: str
    environment: str
    pools: list[Pool]
    berths: list[Ray]
    clusters: list[Ray]
    jobs: list[Job] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    not_in_state: list[str] = field(default_factory=list)
    """Namespaces of berths that the state of the environment's stack does not know."""
    missing: list[Missing] = field(default_factory=list)
    """Owners that the state knows, without an object on the cluster."""

    @property
    def workloads(self) -> list[Ray | Job | Service]:
        """Berths, clusters, jobs and services."""
        return [*self.berths, *self.clusters, *self.jobs, *self.services]

    @property
    def ready(self) -> bool:
        """Whether what is declared exists and is ready; RayJobs run or have succeeded."""
        return all(workload.ready for workload in self.workloads) and not self.missing

    def counted(self, gpus: int, pool: str) -> str:
        """Return what pods request on a pool: `2` for whole GPUs, else `2 shares`."""
        unit = next((found.unit for found in self.pools if found.name == pool), WHOLE)
        return str(gpus) if unit == WHOLE else counted(gpus, unit)

    def requested(self, ray: Ray) -> str:
        """Return what all workers of a RayCluster request: `2`, `2 shares`, `8 + 2 shares`."""
        by_pool: Counter[str] = Counter()
        for group in ray.groups:
            by_pool[group.pool] += group.gpus
        given = [self.counted(gpus, pool) for pool, gpus in by_pool.items() if gpus]
        return " + ".join(given) or self.counted(0, ray.groups[0].pool)

    def of_stack(self, stack: str) -> Fleet:
        """Return the pools, and the berth of an engineer's stack."""
        berths = [berth for berth in self.berths if berth.stack == stack]
        return replace(self, berths=berths, clusters=[], jobs=[], services=[], not_in_state=[])

    def as_json(self) -> dict[str, Any]:
        """Return the fleet for programs, with camelCase keys."""
        return {to_camel(key): _camel(value) for key, value in asdict(self).items()}


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(key): _camel(inner) for key, inner in value.items()}
    return [_camel(inner) for inner in value] if isinstance(value, list) else value


def observe(
    reader: Reader,
    stack: str,
    environment: str,
    pools: Iterable[OfferedPool],
    report: Callable[[str], None],
) -> Fleet:
    """Return the fleet of an environment; report what could not be observed."""
    nodes, _ = reader.list(NODES)
    pods = [
        pod
        for pod in reader.list(PODS)[0]
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]
    everybody = owners_of(reader)
    owners = everybody.of_environment(environment)
    clusters = owners.owned(reader.list(RAY_CLUSTERS)[0])
    pools, evidence = list(pools), Evidence(reader)
    inventory = _inventory(evidence, pools, report)
    nics = _nics_held(inventory or NOTHING)
    kinds: tuple[OwnerKind, ...] = ("engineer", "cluster")
    rays = {
        kind: [
            _ray(evidence, cluster, OWNER_LABELS[kind], nics, pods)
            for cluster in clusters
            # RayClusters of RayJobs in a berth have other names.
            if cluster["metadata"]["labels"].get(OWNER_LABELS[kind]) == cluster["metadata"]["name"]
        ]
        for kind in kinds
    }
    return Fleet(
        stack=stack,
        environment=environment,
        pools=[_pool(pool, nodes, pods, inventory) for pool in pools],
        berths=rays["engineer"],
        clusters=rays["cluster"],
        jobs=_jobs(reader, evidence, owners),
        services=[
            _service(evidence, service)
            for service in owners.owned(reader.list(RAY_SERVICES)[0])
            if service["metadata"]["labels"].get(OWNER_LABELS["service"])
            == service["metadata"]["name"]
        ],
        nodes=nodes_of([pool.name for pool in pools], nodes, everybody.labeled(pods), inventory),
    )


def _inventory(
    evidence: Evidence, pools: Iterable[OfferedPool], report: Callable[[str], None]
) -> Inventory | None:
    """Return the devices that nodes publish for claims; None without the right to see them."""
    if not any(pool.settings.nics or pool.settings.by_dra for pool in pools):
        return NOTHING
    try:
        return evidence.inventory
    except ClusterError as error:
        report(f"NICs and claimed GPUs are not shown: {error}")
        return None


def _pool(
    pool: OfferedPool, nodes: Iterable[Object], pods: Iterable[Object], inventory: Inventory | None
) -> Pool:
    nodes = [
        node
        for node in nodes
        if (node["metadata"].get("labels") or {}).get(POOL_LABEL) == pool.name
    ]
    names = {node["metadata"]["name"] for node in nodes}
    devices = [device for device in (inventory or NOTHING).devices if device.node in names]
    held = [device for device in devices if device.key in (inventory or NOTHING).holders]
    by_count = [
        gpus_of_pod(pod) - claimed_gpus_of(pod)
        for pod in pods
        if pod["spec"].get("nodeName") in names
    ]
    return Pool(
        name=pool.name,
        machine_type=pool.settings.machine_type,
        nodes=len(nodes),
        nodes_at_least=pool.settings.nodes_at_least,
        nodes_ready=sum(is_ready(node) for node in nodes),
        gpus=sum(gpus_in(node["status"].get("allocatable") or {}) for node in nodes)
        + sum(device.is_gpu for device in devices),
        gpus_in_use=sum(by_count) + sum(device.is_gpu for device in held),
        nics=sum(device.is_nic for device in devices),
        nics_in_use=sum(device.is_nic for device in held),
        nics_of_machines=len(nodes) * pool.settings.nics if inventory else 0,
        sharing=pool.sharing,
        unit=pool.unit,
    )


def _nics_held(inventory: Inventory) -> Counter[str]:
    """Return the number of RDMA NICs that claims hold, by namespace."""
    nics = {device.key for device in inventory.devices if device.is_nic}
    return Counter(
        claim.namespace for claim in inventory.claims for key in claim.held if key in nics
    )


def _ray(
    evidence: Evidence,
    cluster: Object,
    owner_label: str,
    nics: Counter[str],
    pods: Iterable[Object],
) -> Ray:
    metadata, condition = cluster["metadata"], condition_of(cluster)
    return Ray(
        name=metadata["labels"][owner_label],
        namespace=metadata["namespace"],
        ray_cluster=metadata["name"],
        stack=metadata["labels"][STACK_LABEL],
        pool=_pools_of(cluster["spec"]),
        state=condition.state,
        ready=condition.ready,
        workers_ready=condition.workers_ready,
        workers_desired=condition.workers_desired,
        gpus=gpus_of_ray_cluster(cluster),
        nics=nics[metadata["namespace"]],
        reasons=[] if condition.ready else reasons_of(evidence, key_of(cluster)),
        life=life_of(cluster),
        groups=live_groups(cluster, pods, suspended=condition.state == "suspended"),
    )


def live_groups(cluster: Object, pods: Iterable[Object], *, suspended: bool) -> list[Group]:
    """Return the groups of a RayCluster, with the ready workers among some pods."""
    key = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    ready: Counter[str] = Counter()
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if (pod["metadata"]["namespace"], labels.get("ray.io/cluster")) == key and why_not_ready(
            pod
        ) is None:
            ready[labels.get("ray.io/group", "")] += 1
    return [
        Group(
            name=group["groupName"],
            pool=_pool_of(group),
            workers_ready=ready[group["groupName"]],
            workers_desired=0 if suspended else replicas_of(group),
            gpus=replicas_of(group) * gpus_of_pod(group["template"]),
        )
        for group in cluster["spec"]["workerGroupSpecs"]
    ]


def _pools_of(spec: Object) -> str:
    return ", ".join(dict.fromkeys(map(_pool_of, spec["workerGroupSpecs"])))


def _pool_of(group: Object) -> str:
    return str(group["template"]["spec"]["nodeSelector"][POOL_LABEL])


def _jobs(reader: Reader, evidence: Evidence, owners: Owners) -> list[Job]:
    """Return the jobs of the settings: in berths of their own, or on somebody's RayCluster."""
    label = OWNER_LABELS["job"]
    found = []
    for job in reader.list(RAY_JOBS, labelSelector=label)[0]:
        owner = owners.of(job)
        name = job["metadata"]["labels"][label]
        # Only the namespace's own job has its name there.
        if owner and (owner.kind != "job" or owner.name == name):
            found.append(_job(evidence, job, name, owner.stack))
    return found


def _job(evidence: Evidence, job: Object, name: str, stack: str) -> Job:
    metadata, condition = job["metadata"], job_condition(job)
    ready = condition.running or condition.succeeded
    return Job(
        name=name,
        namespace=metadata["namespace"],
        ray_job=metadata["name"],
        ray_cluster=condition.ray_cluster,
        stack=stack,
        state=condition.state or "New",
        ready=ready,
        created=str(metadata.get("creationTimestamp") or ""),
        ended=str((job.get("status") or {}).get("endTime") or ""),
        reasons=[] if ready else reasons_of_job(evidence, key_of(job)),
    )


def _service(evidence: Evidence, service: Object) -> Service:
    metadata, condition = service["metadata"], service_condition(service)
    found = [
        evidence.find(RAY_CLUSTERS, (metadata["namespace"], name))
        for name in condition.ray_clusters
    ]
    clusters = list(filter(None, found))
    conditions = [condition_of(cluster) for cluster in clusters]
    return Service(
        name=metadata["labels"][OWNER_LABELS["service"]],
        namespace=metadata["namespace"],
        stack=metadata["labels"][STACK_LABEL],
        pool=_pools_of(service["spec"]["rayClusterConfig"]),
        state=condition.state,
        ready=condition.ready,
        applications_running=condition.running,
        applications=condition.applications,
        serving=condition.serving,
        workers_ready=sum(condition.workers_ready for condition in conditions),
        workers_desired=sum(condition.workers_desired for condition in conditions),
        gpus=sum(gpus_of_ray_cluster(cluster) for cluster in clusters),
        address=f"http://{metadata['name']}-serve-svc.{metadata['namespace']}:{SERVE_PORT}",
        created=str(metadata.get("creationTimestamp") or ""),
        reasons=[] if condition.ready else reasons_of_service(evidence, key_of(service)),
    )
