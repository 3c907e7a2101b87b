"""What a stack's settings are against, at the setting that offends: by the judges, on what the settings plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.core.problems import Path, Problem
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import RayClusterSettings, RayClusterShape, RayShape
from berth.components.ray.workload_settings import RayJobSettings, RayServiceSettings
from berth.components.ray.workloads import ray_job, ray_service
from berth.components.sharing import Pools
from berth.stacks.policies import policy
from berth.stacks.policies.judges import GKE_CLUSTER, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, SERVICE, violations
from berth.stacks.policies.policy import POLICIES, House, Planned, Waiver, how_to_waive, waivers
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.settings.resolve import EnvironmentContract, Resolved

# The setting that each policy is about, from a RayCluster's or the environment's settings on.
_RAY_SETTING: dict[str, Path] = {
    policy.PRIVATE_DASHBOARD: ("dashboard",),
    policy.RAY_AUTH: ("auth",),
    policy.RDMA_WHOLE: ("worker", "gpus"),
}
_CLUSTER_SETTING: dict[str, Path] = {
    policy.DELETION_PROTECTION: ("cluster", "deletionProtection"),
    policy.REQUIRED_LABELS: ("labels",),
}


@dataclass
class Judged:
    """What the policies say of a stack's settings.

    Attributes:
        problems: what is against a policy that holds, and policies that there are not.
        warnings: waivers that nothing needs.
        waivers: those that something needs.
        held: names of the policies that the settings were held to.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    waivers: list[Waiver] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


def house_of(stack: str, settings: EnvironmentSettings, pools: Pools) -> House:
    """What the policies need to know of an environment.

    Args:
        stack: its stack's name.
        settings: its settings.
        pools: its pools.
    """
    waived = settings.policies.waived
    return House(settings.is_production(stack), settings.policies.required_labels, waived, _with_rdma(pools))


def house_for_engineers(contract: EnvironmentContract, pools: Pools) -> House:
    """What the policies need to know of an engineer's own stack.

    Args:
        contract: what its environment says of itself.
        pools: the environment's pools.
    """
    return House(contract.production, waived=contract.waived, rdma=_with_rdma(pools))


def judge_environment(stack: str, settings: EnvironmentSettings, resolved: Resolved) -> Judged:
    """Hold an environment's settings to the policies.

    Args:
        stack: its stack's name.
        settings: its settings.
        resolved: its RayClusters.
    """
    path_of: dict[tuple[str, str], Path] = {}
    planned = []
    pools = resolved.pools
    of_ray: list[tuple[str, Mapping[str, RayClusterShape], Iterable[Planned]]] = [
        ("engineers", settings.engineers, (each for its in resolved.berths for each in _planned_ray(its, pools))),
        ("clusters", settings.clusters, (each for its in resolved.clusters for each in _planned_ray(its, pools))),
        ("jobs", settings.jobs, (_planned_job(job, pools) for job in resolved.jobs if job.own_cluster)),
        ("services", settings.services, (_planned_service(service, pools) for service in resolved.services)),
    ]
    for kind, shapes, resources in of_ray:
        for resource in resources:
            planned.append(resource)
            for name in _RAY_SETTING:
                path_of[name, resource.name] = _where(name, kind, resource.name, shapes, settings.defaults)
    if settings.cluster.existing is None:
        planned.append(_planned_cluster(stack, settings))
    house = house_of(stack, settings, resolved.pools)
    found = violations(planned, house)
    judged = Judged(waivers=waivers(found), held=_held(house, POLICIES))
    told = set()
    for each in found:
        path = path_of.get((each.policy, each.resource), ("environment", *_CLUSTER_SETTING.get(each.policy, ())))
        # What is set once for all, in `defaults`, is wrong once.
        if not each.waived and (each.policy, path) not in told:
            told.add((each.policy, path))
            message = f"{each}, or waive it ({how_to_waive(each.policy)})"
            judged.problems.append(Problem(path, message, rests_on=_rests_on(each.policy, settings)))
    _judge_waivers(settings.policies.waived, judged)
    return judged


def judge_engineer(contract: EnvironmentContract, resolved: Resolved) -> Judged:
    """Hold an engineer's own stack to the policies of its environment, whose waivers are the only ones.

    Args:
        contract: what the environment says of itself.
        resolved: the stack's RayCluster.
    """
    house = house_for_engineers(contract, resolved.pools)
    found = violations((each for its in resolved.berths for each in _planned_ray(its, resolved.pools)), house)
    asked = f"or have environment {contract.name!r} waive it"
    problems = [
        Problem(("engineer", *_RAY_SETTING[each.policy]), f"{each}, {asked} ({how_to_waive(each.policy)})")
        for each in found
        if not each.waived
    ]
    return Judged(problems, waivers=waivers(found), held=_held(house, _RAY_SETTING))


def _held(house: House, names: Iterable[str]) -> list[str]:
    return [name for name in names if name not in house.waived and (house.production or not POLICIES[name].production)]


def _rests_on(name: str, settings: EnvironmentSettings) -> tuple[Path, ...]:
    """The settings that say whether a policy holds: nothing is against it while one of them is wrong by itself."""
    policies: Path = ("environment", "policies")
    holds: list[Path] = [policies, (*policies, "waived"), (*policies, "waived", name)]
    if POLICIES[name].production:
        holds.append(("environment", "production"))
    if name == policy.REQUIRED_LABELS:
        holds.append((*policies, "requiredLabels"))
        holds += [("environment", "labels", label) for label in settings.policies.required_labels]
    return tuple(holds)


def _judge_waivers(waived: Mapping[str, str], into: Judged) -> None:
    needed = {waiver.policy for waiver in into.waivers}
    for name in waived:
        path: Path = ("environment", "policies", "waived", name)
        if name not in POLICIES:
            into.problems.append(
                Problem(path, f"there is no policy {name!r}{did_you_mean(name, POLICIES)}", of_key=True)
            )
        elif name not in needed and name not in _RAY_SETTING:  # those a berth of an engineer's own stack may need
            into.warnings.append(Problem(path, f"nothing here is against policy {name}; take the waiver out"))


def _with_rdma(pools: Pools) -> dict[str, int]:
    return {
        name: pool.settings.machine.gpus
        for name, pool in pools.items()
        if pool.settings.rdma != "none" and pool.settings.machine.rdma
    }


def _planned_ray(cluster: RayClusterSettings, pools: Pools) -> Iterator[Planned]:
    namespace = namespace_of(cluster.name)
    yield Planned(RAY_CLUSTER, cluster.name, ray_cluster(cluster, pools, namespace, {}))
    if service := dashboard_service(cluster, namespace, {}):
        yield Planned(SERVICE, cluster.name, service)


def _planned_job(job: RayJobSettings, pools: Pools) -> Planned:
    cluster = ray_cluster(job.cluster, pools, namespace_of(job.name), {})
    return Planned(RAY_JOB, job.name, ray_job(job, cluster, {}))


def _planned_service(service: RayServiceSettings, pools: Pools) -> Planned:
    cluster = ray_cluster(service.cluster, pools, namespace_of(service.name), {})
    return Planned(RAY_SERVICE, service.name, ray_service(service, cluster))


def _planned_cluster(stack: str, settings: EnvironmentSettings) -> Planned:
    name = settings.cluster.name or stack
    inputs = {
        "name": name,
        "deletionProtection": settings.cluster.deletion_protection,
        "resourceLabels": settings.labels,
    }
    return Planned(GKE_CLUSTER, name, inputs)


def _where(name: str, kind: str, owner: str, shapes: Mapping[str, RayClusterShape], defaults: RayShape) -> Path:
    """Where a RayCluster's setting stands: with its own, or in the defaults that it comes from."""
    setting = _RAY_SETTING[name]
    # How many GPUs a worker takes is wrong for the pool that this cluster is on, wherever it comes from.
    if name != policy.RDMA_WHOLE and _written(defaults, setting) and not _written(shapes[owner], setting):
        return ("environment", "defaults", *setting)
    return ("environment", kind, owner, *setting)


def _written(shape: RayClusterShape, setting: Path) -> bool:
    return getattr(shape, str(setting[0]), None) is not None
