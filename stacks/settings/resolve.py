"""From settings as they are written to complete RayClusters, checked against the pools that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import PlainSerializer

from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.core.problems import Path, Problem
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty
from berth.components.fabric import resource_problem
from berth.components.gke import PoolSettings
from berth.components.hardware.names import ResourceApi
from berth.components.isolation.settings import DEVELOPMENT, PRODUCTION, IsolationSettings
from berth.components.lifecycle import complete as complete_lifecycle
from berth.components.lifecycle import lifecycle_problems
from berth.components.operators import KubeRaySettings
from berth.components.ray import ClusterWorkload, JobWorkload, ServiceWorkload, Workload
from berth.components.ray.complete import complete, whole_node
from berth.components.ray.fit import Demand, capacity_problems, demands_of, second_cluster_warning
from berth.components.ray.rules import cluster_problems, cluster_warnings
from berth.components.ray.settings import RayClusterSettings, RayShape
from berth.components.ray.workload_settings import (
    JobKeys,
    JobShape,
    RayJobSettings,
    RayServiceSettings,
    ServiceKeys,
    ServiceShape,
)
from berth.components.sharing import Pool, Pools, SharingProfile, offered
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.rules import problems_of, warnings_of

_SIZE = tuple(f"worker.{key}" for key in ("gpus", "nics", "cpu", "cpu_limit", "memory", "ray_gpus", "ray_resources"))
"""Settings of a worker's size."""


class EnvironmentContract(Settings):
    """What an environment's stack tells the engineers' stacks, as its output `environment`."""

    format: int = 1
    """Raised when a field changes its meaning."""
    name: str
    """The environment's name."""
    pools: dict[Name, PoolSettings]
    sharing: dict[Name, SharingProfile] = {}
    defaults: Annotated[RayShape, PlainSerializer(lambda shape: shape.model_dump(by_alias=True, exclude_unset=True))]
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
        return [workload.settings for workload in self.workloads()]

    def workloads(self) -> Iterator[Workload]:
        """Yield the workload of every berth: all RayClusters, and the RayJobs and RayServices that have their own."""
        yield from (ClusterWorkload(berth, "engineer") for berth in self.berths)
        yield from (ClusterWorkload(cluster, "cluster") for cluster in self.clusters)
        yield from (JobWorkload(job) for job in self.jobs if job.own_cluster)
        yield from (ServiceWorkload(service) for service in self.services)


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
            elif cluster := _resolve(name, shape, settings.defaults, path, resolved, for_whole_node=kind == "clusters"):
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
    cluster = _resolve(name, settings.shape, contract.defaults, path, resolved, for_whole_node=False)
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
    kept = [settings.keeper is not None, complete_lifecycle(settings.defaults.lifecycle).any]
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
        cluster = _resolve(
            name, shape.shape, defaults.without("dashboard"), path, into, for_whole_node=True, counted=False
        )
        into.problems += capacity_problems(into.pools, demands_of(cluster) if cluster else [], path)
    else:
        # That there is none is said by rules/workloads.py.
        cluster = next((each for each in (*into.berths, *into.clusters) if each.name == shape.cluster), None)
    if cluster is None:
        return
    written = shape.model_dump(include=set(JobKeys.model_fields), exclude_unset=True)
    goal = {"until": "submitted" if cluster.wait.until == "submitted" else "running", "timeout": cluster.wait.timeout}
    job = {"name": name, "cluster": cluster, "own_cluster": shape.cluster is None, "wait": goal | shape.wait.written()}
    into.jobs.append(RayJobSettings.model_validate(written | job))


def _resolve_service(name: str, shape: ServiceShape, defaults: RayShape, path: Path, into: Resolved) -> None:
    cluster = _resolve(name, shape.shape, defaults.without("dashboard"), path, into, for_whole_node=True)
    if cluster is None:
        return
    written = shape.model_dump(include=set(ServiceKeys.model_fields), exclude_unset=True)
    service = RayServiceSettings.model_validate({**written, "name": name, "cluster": cluster})
    into.services.append(service)
    if service.upgrade_strategy == "NewCluster" and (warning := second_cluster_warning(cluster, into.pools, path)):
        into.warnings.append(warning)


def _resolve(
    name: str,
    shape: RayShape,
    defaults: RayShape,
    path: Path,
    into: Resolved,
    *,
    for_whole_node: bool,
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
    if for_whole_node:
        if worker_pool.shared and "gpus" not in shape.worker.model_fields_set:
            message = (
                f"a cluster's worker takes a whole node, but pool {worker_pool.name!r} shares its GPUs; name a pool that"
                " doesn't, or say how many shares a worker takes (worker.gpus)"
            )
            into.problems.append(Problem((*path, "worker", "pool"), message))
            return None
        # The worker's size in the defaults is a berth's; a cluster takes whole nodes unless its own settings differ.
        wanted = shape.over(defaults.without("lifecycle", *_SIZE)).over(whole_node(worker_pool))
    if problem := resource_problem(wanted.worker.gpu_resource, worker_pool, path):
        into.problems.append(problem)
    cluster = complete(name, wanted, worker_pool, head_pool, PRODUCTION if for_whole_node else DEVELOPMENT)
    into.problems += cluster_problems(cluster, into.pools, path)
    into.demands += demands_of(cluster) if counted else []
    into.problems += lifecycle_problems(shape.lifecycle, cluster.lifecycle, path)
    into.warnings += cluster_warnings(cluster, into.pools, path)
    return cluster


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
