"""From settings as they are written to complete RayClusters, checked against the pools that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import Path, Problem
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty
from berth.components.fabric import nccl_of, nics_of, resource_problem
from berth.components.gke import PoolSettings
from berth.components.hardware.names import GPU_RESOURCE, ResourceApi
from berth.components.isolation.settings import DEVELOPMENT, PRODUCTION, IsolationSettings
from berth.components.lifecycle.settings import LifecycleShape, complete, lifecycle_problems
from berth.components.operators.settings import KubeRaySettings
from berth.components.ray.fit import Demand, capacity_problems, demands_of, second_cluster_warning
from berth.components.ray.rules import cluster_problems, cluster_warnings
from berth.components.ray.settings import BUILT_IN, RayClusterSettings, RayShape
from berth.components.ray.workload_settings import JobShape, JobUntil, RayJobSettings, RayServiceSettings, ServiceShape
from berth.components.sharing import Pool, Pools, SharingProfile, offered
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.rules import problems_of, warnings_of

# What a worker that takes a whole node asks for; the rest stays for GKE's own reservation and daemons. The A4 recipe of
# the DraNet documentation asks for 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")

_NO_SIZE = dict.fromkeys(("gpus", "nics", "cpu", "cpu_limit", "memory", "ray_gpus", "ray_resources"))


class EnvironmentContract(Settings):
    """What an environment's stack tells the engineers' stacks, as its output `environment`."""

    format: int = 1
    """Raised when a field changes its meaning."""
    name: str
    """The environment's name."""
    pools: dict[Name, PoolSettings]
    sharing: dict[Name, SharingProfile] = {}
    defaults: RayShape
    demands: list[Demand]
    """What the environment's own berths and clusters ask of the pools."""
    namespaces: dict[str, str]
    """Namespaces that the environment's stack made, with whose they are."""
    resource_api: ResourceApi = "v1"
    """The version of resource.k8s.io in which claims are made there."""
    kuberay: KubeRaySettings = KubeRaySettings()
    """Where its KubeRay operator is."""
    isolation: IsolationSettings | None = None
    """What it loosens of what keeps berths apart. None: it was made before there were PriorityClasses for its berths."""
    production: bool = False
    """It is a production environment."""
    waived: dict[NonEmpty, NonEmpty] = {}
    """Policies that do not hold there, each with the reason: an engineer's own stack can waive none."""
    keeper: bool = False
    """It has a keeper, which suspends and wakes berths."""


@dataclass
class Resolved:
    """Complete RayClusters of a stack, with everything that is wrong with them."""

    pools: Pools
    berths: list[RayClusterSettings] = field(default_factory=list)
    clusters: list[RayClusterSettings] = field(default_factory=list)
    jobs: list[RayJobSettings] = field(default_factory=list)
    services: list[RayServiceSettings] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """What works, but likely not as it is meant."""
    unknown_pools: frozenset[str] = frozenset()
    """Pools that are named but whose own settings are wrong: nothing can be said about what runs on them."""

    @property
    def every(self) -> list[RayClusterSettings]:
        """Every RayCluster that the stack makes or has KubeRay make."""
        return [cluster for _, cluster, _ in self.owners()]

    def owners(self) -> Iterator[tuple[OwnerKind, RayClusterSettings, RayJobSettings | RayServiceSettings | None]]:
        """Yield every RayCluster with its kind of owner, and the RayJob or RayService that has KubeRay create it."""
        yield from (("engineer", berth, None) for berth in self.berths)
        yield from (("cluster", cluster, None) for cluster in self.clusters)
        yield from (("job", job.cluster, job) for job in self.jobs if job.own_cluster)
        yield from (("service", service.cluster, service) for service in self.services)


def resolve_environment(settings: EnvironmentSettings, *, unknown_pools: frozenset[str] = frozenset()) -> Resolved:
    """All RayClusters of an environment, and every problem across its settings."""
    pools = offered(settings.pools, settings.sharing)
    resolved = Resolved(pools, unknown_pools=unknown_pools | (settings.pools.keys() - pools.keys()))
    resolved.problems += problems_of(settings)
    resolved.warnings += warnings_of(settings)
    kinds: dict[str, str] = {}
    for kind, what, shapes in (
        ("engineers", "an engineer", settings.engineers),
        ("clusters", "a cluster", settings.clusters),
        ("jobs", "a job", settings.jobs),
        ("services", "a service", settings.services),
    ):
        for name, shape in shapes.items():
            path: Path = ("environment", kind, name)
            if name in kinds:
                message = f"{name!r} is both {kinds[name]} and {what}; both would be namespace {namespace_of(name)}: rename one"
                resolved.problems.append(Problem(path, message, of_key=True))
                continue
            kinds[name] = what
            if isinstance(shape, JobShape):
                _resolve_job(name, shape, settings.defaults, path, resolved)
            elif isinstance(shape, ServiceShape):
                _resolve_service(name, shape, settings.defaults, path, resolved)
            elif cluster := _resolve(name, shape, settings.defaults, path, resolved, whole_node=kind == "clusters"):
                (resolved.clusters if kind == "clusters" else resolved.berths).append(cluster)
    resolved.problems += capacity_problems(pools, resolved.demands, ("environment", "pools"))
    return resolved


def resolve_engineer(settings: EngineerSettings, stack: str, contract: EnvironmentContract) -> Resolved:
    """The one RayCluster of an engineer's stack, checked against the environment that it berths on."""
    resolved = Resolved(offered(contract.pools, contract.sharing))
    name = settings.name or stack
    path: Path = ("engineer",)
    if namespace_of(name) in contract.namespaces:
        message = (
            f"environment {contract.name!r} has {name!r} among its own ({contract.namespaces[namespace_of(name)]}); remove it"
            " there, or give this stack another `name`"
        )
        resolved.problems.append(Problem((*path, "name"), message))
    if settings.priority not in (None, contract.defaults.priority):
        message = f"which berths go first is for environment {contract.name!r} to say, not for an engineer's own stack; take it out"
        resolved.problems.append(Problem((*path, "priority"), message))
    cluster = _resolve(name, settings.shape, contract.defaults, path, resolved, whole_node=False)
    if cluster:
        resolved.berths.append(cluster)
        if cluster.lifecycle.any and not contract.keeper:
            message = (
                f"environment {contract.name!r} has no keeper, so nobody would suspend or wake the berth; give it one there"
                f" (`keeper: {{}}`; then pulumi up -s {contract.name}), or take this out"
            )
            resolved.problems.append(Problem((*path, "lifecycle"), message))
        resolved.problems += capacity_problems(resolved.pools, [*contract.demands, *resolved.demands], path)
    return resolved


def contract_of(
    settings: EnvironmentSettings, stack: str, resolved: Resolved, resource_api: ResourceApi = "v1"
) -> EnvironmentContract:
    """What an environment's stack tells the engineers' stacks."""
    return EnvironmentContract(
        name=stack,
        pools=settings.pools,
        sharing=settings.sharing,
        defaults=settings.defaults,
        demands=resolved.demands,
        namespaces={
            **{namespace_of(berth.name): f"engineers.{berth.name}" for berth in resolved.berths},
            **{namespace_of(cluster.name): f"clusters.{cluster.name}" for cluster in resolved.clusters},
            **{namespace_of(job.name): f"jobs.{job.name}" for job in resolved.jobs if job.own_cluster},
            **{namespace_of(service.name): f"services.{service.name}" for service in resolved.services},
        },
        resource_api=resource_api,
        kuberay=settings.operators.kuberay,
        isolation=settings.isolation,
        production=settings.is_production(stack),
        waived=settings.policies.waived,
        keeper=has_keeper(settings, resolved),
    )


def has_keeper(settings: EnvironmentSettings, resolved: Resolved) -> bool:
    """Whether an environment has a keeper: one is asked for, or a berth of it, or one that takes its defaults, has a lifecycle."""
    kept = [settings.keeper is not None, complete(settings.defaults.lifecycle).any]
    return any([*kept, *(each.lifecycle.any for each in (*resolved.berths, *resolved.clusters))])


RESERVED = {
    "verify": "`berth verify` runs its Jobs in namespace berth-verify",
    "keeper": "the keeper runs in namespace berth-keeper",
}
"""Names that no engineer and no cluster can have, with the reason."""


def _resolve_job(name: str, shape: JobShape, defaults: RayShape, path: Path, into: Resolved) -> None:
    """A RayJob, with a RayCluster of its own or on one that is resolved already.

    It is held against its pools alone, not in the sum of what all ask for: a job waits for room, and one that has ended holds none.
    """
    if shape.cluster is None:
        cluster = _resolve(name, shape.shape, _without_own_ways(defaults), path, into, whole_node=True, counted=False)
        into.problems += capacity_problems(into.pools, demands_of(cluster) if cluster else [], path)
    else:
        # That there is none is said by rules/workloads.py.
        cluster = next((each for each in (*into.berths, *into.clusters) if each.name == shape.cluster), None)
    if cluster is None:
        return
    given = shape.model_dump(include=_OF_JOB, exclude_none=True)
    default: JobUntil = "submitted" if cluster.wait_until == "submitted" else "running"
    times = {"wait_until": shape.wait.until or default, "wait_timeout": shape.wait.timeout or cluster.wait_timeout}
    into.jobs.append(
        RayJobSettings.model_validate(
            {"name": name, "cluster": cluster, "own_cluster": shape.cluster is None, **given, **times}
        )
    )


def _resolve_service(name: str, shape: ServiceShape, defaults: RayShape, path: Path, into: Resolved) -> None:
    cluster = _resolve(name, shape.shape, _without_own_ways(defaults), path, into, whole_node=True)
    if cluster is None:
        return
    service = RayServiceSettings(
        name=name,
        cluster=cluster,
        serve_config=shape.serve_config,
        code=shape.code,
        clients=shape.clients,
        upgrade_strategy=shape.upgrade_strategy,
    )
    into.services.append(service)
    if service.upgrade_strategy == "NewCluster" and (warning := second_cluster_warning(cluster, into.pools, path)):
        into.warnings.append(warning)


def _without_own_ways(defaults: RayShape) -> RayShape:
    """Defaults without what RayJobs and RayServices have other ways for: their heads are nobody's to reach."""
    return defaults.model_copy(update={"dashboard": None})


_OF_JOB = set(RayJobSettings.model_fields) & set(JobShape.model_fields) - {"cluster"}


def _resolve(
    name: str,
    shape: RayShape,
    defaults: RayShape,
    path: Path,
    into: Resolved,
    *,
    whole_node: bool,
    counted: bool = True,
) -> RayClusterSettings | None:
    """One complete RayCluster; None, with the problems in `into`, where its pools cannot be told."""
    if name in RESERVED:
        into.problems.append(Problem(path, f"{name!r} is reserved: {RESERVED[name]}; take another name", of_key=True))
    wanted = shape.over(defaults)
    worker_pool = _choose_pool(wanted.worker.pool, "worker", path, into, gpus=wanted.worker.gpus != 0)
    head_pool = _choose_pool(wanted.head.pool, "head", path, into, gpus=False)
    if worker_pool is None or head_pool is None:
        return None
    base = BUILT_IN
    if whole_node:
        defaults = defaults.model_copy(update={"lifecycle": LifecycleShape()})
        # A cluster takes the node whole unless it says otherwise itself: the defaults' worker is a berth's.
        wanted = shape.over(defaults.model_copy(update={"worker": defaults.worker.model_copy(update=_NO_SIZE)}))
        if worker_pool.shared and shape.worker.gpus is None:
            message = (
                f"a cluster's worker takes a whole node, but pool {worker_pool.name!r} shares its GPUs; name a pool that"
                " doesn't, or say how many shares a worker takes (worker.gpus)"
            )
            into.problems.append(Problem((*path, "worker", "pool"), message))
            return None
        base = _whole_node(worker_pool).over(BUILT_IN)
    full = wanted.over(base)
    advertised = worker_pool.offer.resource if worker_pool.offer else GPU_RESOURCE
    resource = advertised if worker_pool.settings.by_dra else full.worker.gpu_resource or advertised
    if problem := resource_problem(full.worker.gpu_resource, worker_pool, path):
        into.problems.append(problem)
    nics = nics_of(full.worker.nics, full.worker.gpus, worker_pool)
    cluster = RayClusterSettings.model_validate(
        {
            "name": name,
            "workers": full.workers,
            "worker": full.worker.model_dump()
            | {
                "pool": worker_pool.name,
                "gpu_resource": resource,
                "nics": nics,
                "cpu_limit": full.worker.cpu_limit or full.worker.cpu,
                "ray_resources": full.worker.ray_resources or {},
            },
            "head": full.head.model_dump() | {"pool": head_pool.name},
            "image": full.image,
            "image_has": full.image_has or (),
            "ray_version": full.ray_version,
            "env": full.env,
            "nccl": nccl_of(full.nccl, full.worker.gpus, nics, full.worker.memory or "0", worker_pool).model_dump(),
            "nested_containers": full.nested_containers,
            "auth": full.auth,
            "dashboard": full.dashboard,
            "access": full.access.model_dump(exclude_none=True),
            "priority": full.priority or (PRODUCTION if whole_node else DEVELOPMENT),
            "lifecycle": complete(full.lifecycle).model_dump(),
            "wait_until": full.wait.until,
            "wait_timeout": full.wait.timeout,
        }
    )
    into.problems += cluster_problems(cluster, into.pools, path)
    into.demands += demands_of(cluster) if counted else []
    into.problems += lifecycle_problems(shape.lifecycle, cluster.lifecycle, path)
    into.warnings += cluster_warnings(cluster, into.pools, path)
    return cluster


def _whole_node(pool: Pool) -> RayShape:
    machine = pool.settings.machine
    return RayShape.model_validate(
        {
            "worker": {
                "gpus": pool.per_node,
                "cpu": str(max(1, int(machine.vcpus * _WHOLE_NODE_CPU))),
                "memory": f"{max(1, int(machine.memory_gib * _WHOLE_NODE_MEMORY))}Gi",
            }
        }
    )


def _choose_pool(given: str | None, role: str, path: Path, into: Resolved, *, gpus: bool) -> Pool | None:
    where: Path = (*path, role, "pool")
    pools = into.pools
    if given is not None:
        if given not in pools and given not in into.unknown_pools:
            into.problems.append(Problem(where, f"there is no pool {given!r}{did_you_mean(given, pools)}"))
        return pools.get(given)
    if into.unknown_pools:
        return None
    fitting = sorted(name for name, pool in pools.items() if bool(pool.per_node) == gpus)
    if len(fitting) == 1:
        return pools[fitting[0]]
    with_gpus = "with GPUs" if gpus else "without GPUs"
    if fitting:
        message = f"is required, since several pools are {with_gpus}: {', '.join(fitting)}"
    else:
        message = f"is required, since no pool is {with_gpus}; pools are {', '.join(sorted(pools))}"
    into.problems.append(Problem(where, message + f" (or set defaults.{role}.pool)"))
    return None
