"""Resolution of settings to complete RayClusters, checked against the pools that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import PlainSerializer

from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import Path, Problem
from berth.components.core.settings import Settings
from berth.components.core.types import Name, NonEmpty, ProjectId
from berth.components.fabric import resource_problem
from berth.components.gke import ExistingCluster, PoolSettings
from berth.components.gke.rules import capacity, cluster, location, network, nodes, placement
from berth.components.hardware.names import ResourceApi
from berth.components.isolation import DEVELOPMENT, PRODUCTION, IsolationSettings
from berth.components.lifecycle import complete as complete_lifecycle
from berth.components.lifecycle import lifecycle_problems
from berth.components.operators import KubeRaySettings
from berth.components.operators import rules as operators
from berth.components.ray import (
    RayClusterSettings,
    RayShape,
    Workload,
    cluster_workload,
    job_workload,
    service_workload,
)
from berth.components.ray import workload_rules as workloads
from berth.components.ray.complete import complete, whole_node
from berth.components.ray.fit import Demand, capacity_problems, demands_of, second_cluster_warning
from berth.components.ray.groups import group_problems, groups_of, within
from berth.components.ray.pod_template_rules import pod_template_problems, without_patches
from berth.components.ray.rules import cluster_problems, cluster_warnings
from berth.components.ray.secret_manager import secret_problems
from berth.components.ray.settings import WorkerGroupShape, merge
from berth.components.ray.variables import from_secret_manager
from berth.components.ray.volumes import mounts_buckets, mounts_shares
from berth.components.ray.workload_settings import (
    JobKeys,
    JobShape,
    RayJobSettings,
    RayServiceSettings,
    ServiceKeys,
    ServiceShape,
)
from berth.components.sharing import Pool, Pools, SharingProfile, offered, scaling
from berth.components.sharing import rules as sharing
from berth.stacks.settings import groups
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import EnvironmentSettings

KEYS: dict[OwnerKind, str] = {
    "engineer": "engineers",
    "cluster": "clusters",
    "job": "jobs",
    "service": "services",
}
"""Key of an environment's settings that lists the owners of one kind."""

RESERVED = {
    "verify": "`berth verify` runs its Jobs in namespace berth-verify",
    "keeper": "the keeper runs in namespace berth-keeper",
}
"""Names that no engineer and no cluster can have, with the reason."""

# Rules on an environment's settings: what GKE, Google Cloud or Kubernetes would refuse.
_RULES = (location, cluster, network, capacity, placement, nodes, sharing, scaling, operators, workloads)
_WITH_WARNINGS = (cluster, capacity, sharing, scaling, operators, groups)

_SIZE = tuple(f"worker.{key}" for key in ("gpus", "nics", "cpu", "cpu_limit", "memory", "ray_gpus", "ray_resources"))
"""Settings of a worker's size."""


class EnvironmentContract(Settings):
    """Output `environment` of an environment's stack, which engineers' stacks read."""

    format: int = 1
    """Version of the format, raised when a field changes its meaning."""
    name: str
    """Name of the environment."""
    pools: dict[Name, PoolSettings]
    sharing: dict[Name, SharingProfile] = {}
    defaults: Annotated[RayShape, PlainSerializer(lambda shape: shape.model_dump(by_alias=True, exclude_unset=True))]
    demands: list[Demand]
    """Demands of the environment's own berths and clusters on the pools."""
    namespaces: dict[str, str]
    """Owners of the namespaces that the environment's stack registers."""
    resource_api: ResourceApi = "v1"
    """Version of resource.k8s.io for claims on the cluster."""
    kuberay: KubeRaySettings = KubeRaySettings()
    """Place of the KubeRay operator."""
    isolation: IsolationSettings | None = None
    """Isolation of its berths. None: a version of berth without PriorityClasses wrote this."""
    production: bool = False
    """Whether the environment is a production environment."""
    waived: dict[NonEmpty, NonEmpty] = {}
    """Policies that do not hold, each with the reason: an engineer's own stack can waive none."""
    keeper: bool = False
    """Whether a keeper suspends and wakes berths."""
    gcs_fuse: bool = True
    """Whether pods can mount buckets, as far as the settings say."""
    filestore: Literal[True] | None = None
    """Whether pods can mount shares of Filestore."""
    project: ProjectId | None = None
    """Google Cloud project, if GKE synchronizes Secrets with Secret Manager there."""
    login: ExistingCluster | None = None
    """Kubeconfig of an existing cluster: its file and context, which say nothing secret."""
    currency: str | None = None
    """Currency of the pools' hourly rates."""


@dataclass
class Resolved:
    """Complete RayClusters of a stack, with all problems."""

    pools: Pools
    berths: list[RayClusterSettings] = field(default_factory=list)
    clusters: list[RayClusterSettings] = field(default_factory=list)
    jobs: list[RayJobSettings] = field(default_factory=list)
    services: list[RayServiceSettings] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """Settings that work, but probably not as intended."""
    unknown_pools: frozenset[str] = frozenset()
    """Pools with problems of their own, which decide nothing about the RayClusters on them."""
    on_existing: bool = False
    """Whether the cluster is an existing one, so that the settings have no Google Cloud project."""

    @property
    def every(self) -> list[RayClusterSettings]:
        """RayClusters that the stack registers or has KubeRay create."""
        return [workload.settings for workload in self.workloads()]

    def workloads(self) -> Iterator[Workload]:
        """Yield every RayCluster, and the RayJob or RayService that has its own."""
        yield from (cluster_workload(berth, "engineer") for berth in self.berths)
        yield from (cluster_workload(cluster, "cluster") for cluster in self.clusters)
        yield from (job_workload(job) for job in self.jobs if job.own_cluster)
        yield from (service_workload(service) for service in self.services)

    def refuse(self, path: Path, message: str, *, of_key: bool = False) -> None:
        """Add a problem."""
        self.problems.append(Problem(path, message, of_key))


def resolve_environment(settings: EnvironmentSettings, *, unknown_pools: frozenset[str] = frozenset()) -> Resolved:
    """Return all RayClusters of an environment, and all problems across its settings."""
    pools = offered(settings.pools, settings.sharing)
    resolved = Resolved(
        pools,
        unknown_pools=unknown_pools | (settings.pools.keys() - pools.keys()),
        on_existing=settings.cluster.existing is not None,
    )
    resolved.problems += [problem for rule in _RULES for problem in rule.problems(settings)]
    resolved.problems += group_problems(settings.defaults, ("environment", "defaults"))
    resolved.warnings += [warning for rule in _WITH_WARNINGS for warning in rule.warnings(settings)]
    kinds: dict[str, OwnerKind] = {}
    for kind, key in KEYS.items():
        for name, shape in getattr(settings, key).items():
            path: Path = ("environment", key, name)
            if name in kinds:
                both = " and ".join(f"{'an' if owner == 'engineer' else 'a'} {owner}" for owner in (kinds[name], kind))
                message = f"{name!r} is both {both}; both would be namespace {namespace_of(name)}: rename one"
                resolved.refuse(path, message, of_key=True)
                continue
            kinds[name] = kind
            if isinstance(shape, JobShape):
                _resolve_job(name, shape, settings.defaults, path, resolved)
            elif isinstance(shape, ServiceShape):
                _resolve_service(name, shape, settings.defaults, path, resolved)
            elif cluster := _resolve(name, shape, settings.defaults, path, resolved, for_whole_node=kind == "cluster"):
                (resolved.clusters if kind == "cluster" else resolved.berths).append(cluster)
    resolved.problems += capacity_problems(pools, resolved.demands, ("environment", "pools"))
    for key, given, what, uses in (
        ("gcsFuse", settings.cluster.gcs_fuse, "mounts a bucket", lambda cluster: mounts_buckets(cluster.volumes)),
        ("filestore", settings.cluster.filestore, "mounts a share", lambda cluster: mounts_shares(cluster.volumes)),
        (
            "secretSync",
            settings.cluster.secret_sync,
            "has a secret of Secret Manager",
            lambda cluster: from_secret_manager(cluster.secrets),
        ),
    ):
        users = [cluster.name for cluster in resolved.every if uses(cluster)]
        if users and given is False:
            resolved.refuse(("environment", "cluster", key), f"is false, but {', '.join(users)} {what}; take it out")
    return resolved


def resolve_engineer(settings: EngineerSettings, stack: str, contract: EnvironmentContract) -> Resolved:
    """Return the RayCluster of an engineer's stack, checked against its environment."""
    resolved = Resolved(offered(contract.pools, contract.sharing), on_existing=contract.login is not None)
    name, environment = settings.name or stack, f"environment {contract.name!r}"
    if owner := contract.namespaces.get(namespace_of(name)):
        message = (
            f"{environment} has {name!r} among its own ({owner}); remove it there, or give this stack another `name`"
        )
        resolved.refuse(("engineer", "name"), message)
    if settings.priority not in (None, contract.defaults.priority):
        message = f"only {environment} decides which berths go first, not an engineer's own stack; take this out"
        resolved.refuse(("engineer", "priority"), message)
    cluster = _resolve(name, settings.shape, contract.defaults, ("engineer",), resolved, for_whole_node=False)
    if cluster:
        resolved.berths.append(cluster)
        if cluster.lifecycle.any and not contract.keeper:
            message = (
                f"{environment} has no keeper, so nothing would suspend or wake the berth; give it one there"
                f" (`keeper: {{}}`; then pulumi up -s {contract.name}), or take this out"
            )
            resolved.refuse(("engineer", "lifecycle"), message)
        if mounts_buckets(cluster.volumes) and not contract.gcs_fuse:
            message = (
                f"{environment} has no driver for buckets; write there `cluster: {{gcsFuse: true}}`, and run: pulumi up"
                f" -s {contract.name}"
            )
            resolved.refuse(("engineer", "volumes"), message)
        resolved.problems += _lacking(cluster, contract)
        demands = [*contract.demands, *resolved.demands]
        resolved.problems += capacity_problems(resolved.pools, demands, ("engineer",))
    return resolved


def _lacking(cluster: RayClusterSettings, contract: EnvironmentContract) -> Iterator[Problem]:
    """Yield what a berth of an engineer's own stack needs and its environment does not have."""
    if contract.login:  # nobody's settings say what an existing cluster has
        return
    where = f"environment {contract.name!r}"
    then = f"and run: pulumi up -s {contract.name}"
    if mounts_shares(cluster.volumes) and not contract.filestore:
        text = f"{where} has no driver for shares; write there `cluster: {{filestore: true}}`, {then}"
        yield Problem(("engineer", "volumes"), text)
    if from_secret_manager(cluster.secrets) and not contract.project:
        text = f"{where} does not read Secret Manager; write there `cluster: {{secretSync: true}}`, {then}"
        yield Problem(("engineer", "secrets"), text)


def contract_of(
    settings: EnvironmentSettings, stack: str, resolved: Resolved, resource_api: ResourceApi = "v1"
) -> EnvironmentContract:
    """Return what an environment's stack tells engineers' stacks."""
    return EnvironmentContract(
        name=stack,
        pools=settings.pools,
        sharing=settings.sharing,
        defaults=settings.defaults,
        demands=resolved.demands,
        namespaces={
            namespace_of(workload.settings.name): f"{KEYS[workload.kind]}.{workload.settings.name}"
            for workload in resolved.workloads()
        },
        resource_api=resource_api,
        # Only the environment installs the operator.
        kuberay=settings.operators.kuberay.model_copy(update={"values": None}),
        isolation=settings.isolation_here,
        production=settings.is_production(stack),
        waived=settings.policies.waived,
        keeper=has_keeper(settings, resolved),
        gcs_fuse=bool(settings.gcs_fuse) or settings.cluster.existing is not None,
        filestore=(settings.filestore and settings.cluster.existing is None) or None,
        project=settings.project if settings.secret_sync else None,
        login=settings.cluster.existing,
        currency=settings.currency,
    )


def has_keeper(settings: EnvironmentSettings, resolved: Resolved) -> bool:
    """Return whether an environment has a keeper: by its settings, or for a lifecycle."""
    lifecycles = [cluster.lifecycle for cluster in (*resolved.berths, *resolved.clusters)]
    with_defaults = [complete_lifecycle(settings.defaults.lifecycle), *lifecycles]
    return settings.keeper is not None or any(lifecycle.any for lifecycle in with_defaults)


def _resolve_job(name: str, shape: JobShape, defaults: RayShape, path: Path, into: Resolved) -> None:
    """Resolve a RayJob, with a RayCluster of its own or on one that is resolved already.

    Its demands are checked alone, not in sum with all others: a job waits for room, and one that
    has ended takes none.
    """
    if shape.cluster is None:
        own = shape.shape, defaults.without("dashboard", "home")
        cluster = _resolve(name, *own, path, into, for_whole_node=True, counted=False)
        into.problems += capacity_problems(into.pools, demands_of(cluster) if cluster else [], path)
    else:
        # A cluster that does not exist is a problem of the workloads' rules.
        known = (*into.berths, *into.clusters)
        cluster = next((cluster for cluster in known if cluster.name == shape.cluster), None)
    if cluster is None:
        return
    written = shape.model_dump(include=set(JobKeys.model_fields), exclude_unset=True)
    goal = {"until": "submitted" if cluster.wait.until == "submitted" else "running", "timeout": cluster.wait.timeout}
    job = {"name": name, "cluster": cluster, "own_cluster": shape.cluster is None, "wait": goal | shape.wait.written()}
    into.jobs.append(RayJobSettings.model_validate(written | job))


def _resolve_service(name: str, shape: ServiceShape, defaults: RayShape, path: Path, into: Resolved) -> None:
    cluster = _resolve(name, shape.shape, defaults.without("dashboard", "home"), path, into, for_whole_node=True)
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
    """Return a complete RayCluster; None, with problems in `into`, where its pools are unknown."""
    if name in RESERVED:
        into.refuse(path, f"{name!r} is reserved: {RESERVED[name]}; take another name", of_key=True)
    into.problems += group_problems(shape, path)
    if for_whole_node:
        # The groups of the defaults, and their workers' sizes, are a berth's.
        defaults = defaults.without("worker_groups")
    merged = shape.over(defaults)
    groups = groups_of(merged)
    pools = {
        group: _choose_pool(worker.pool, "worker", (*path, *within(merged, group)), into, gpus=worker.gpus != 0)
        for group, worker in groups.items()
    }
    head_pool = _choose_pool(merged.head.pool, "head", (*path, "head"), into, gpus=False)
    found = {group: pool for group, pool in pools.items() if pool}
    if len(found) < len(pools) or head_pool is None:
        return None
    if for_whole_node:
        written = groups_of(shape)
        for group, pool in found.items():
            if pool.shared and "gpus" not in written[group].model_fields_set:
                message = (
                    f"a cluster's worker takes a whole node, but pool {pool.name!r} shares its GPUs; name a pool"
                    " that doesn't, or say how many shares a worker takes (worker.gpus)"
                )
                into.refuse((*path, *within(merged, group), "pool"), message)
                return None
        # A cluster takes whole nodes by default.
        merged = shape.over(defaults.without("lifecycle", "home", *_SIZE))
        groups = {
            group: WorkerGroupShape.model_validate(merge(whole_node(found[group]), worker.written()))
            for group, worker in groups_of(merged).items()
        }
    for group, pool in found.items():
        if problem := resource_problem(groups[group].gpu_resource, pool, (*path, *within(merged, group))):
            into.problems.append(problem)
    cluster = complete(name, merged, found, head_pool, PRODUCTION if for_whole_node else DEVELOPMENT, groups)
    if of_patches := list(pod_template_problems(cluster, into.pools, path, shape)):
        into.problems += of_patches
        cluster = without_patches(cluster)
    into.problems += cluster_problems(cluster, into.pools, path)
    into.problems += secret_problems(cluster.secrets, path, projects=into.on_existing)
    into.demands += demands_of(cluster) if counted else []
    into.problems += lifecycle_problems(shape.lifecycle, cluster.lifecycle, path)
    into.warnings += cluster_warnings(cluster, into.pools, path)
    return cluster


def _choose_pool(given: str | None, role: str, path: Path, into: Resolved, *, gpus: bool) -> Pool | None:
    where: Path = (*path, "pool")
    pools = into.pools
    if given is not None:
        if given not in pools and given not in into.unknown_pools:
            into.refuse(where, f"there is no pool {given!r}{did_you_mean(given, {*pools, *into.unknown_pools})}")
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
    into.refuse(where, f"{message} (or set defaults.{role}.pool)")
    return None
