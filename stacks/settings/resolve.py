"""From settings as they are written to complete RayClusters, checked against the pools that they run on."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from stacks.settings import versions
from stacks.settings.base import Settings
from stacks.settings.engineer import EngineerSettings
from stacks.settings.environment import FleetSettings, NetworkSettings, PoolSettings
from stacks.settings.nearest import did_you_mean
from stacks.settings.problems import Path, Problem
from stacks.settings.ray import BUILT_IN, RayClusterSettings, RayShape
from stacks.settings.types import Name, parse_quantity

GIB = 2**30

# What a worker that takes a whole node asks for; the rest stays for GKE's own reservation and daemons. The A4 recipe of
# the DraNet documentation asks for 200 of 224 cores.
_WHOLE_NODE_CPU = Decimal("0.9")
_WHOLE_NODE_MEMORY = Decimal("0.8")

_TAG_VERSION = re.compile(r":v?(\d+\.\d+\.\d+)(?:[-.].*)?$")


class Demand(Settings):
    """What one RayCluster asks of one pool when it starts.

    Attributes of quantities are sums over its pods there.
    """

    owner: str
    """Who asks, for people: `alice`."""
    pool: Name
    gpus: int
    cores: Decimal
    memory_gib: Decimal


class EnvironmentContract(Settings):
    """What an environment's stack tells the engineers' stacks, as its output `environment`."""

    format: int = 1
    """Raised when a field changes its meaning."""
    name: str
    """The environment's name."""
    pools: dict[Name, PoolSettings]
    defaults: RayShape
    demands: list[Demand]
    """What the environment's own berths and clusters ask of the pools."""
    namespaces: dict[str, str]
    """Namespaces that the environment's stack made, with whose they are."""


@dataclass
class Resolved:
    """Complete RayClusters of a stack, with everything that is wrong with them."""

    berths: list[RayClusterSettings] = field(default_factory=list)
    clusters: list[RayClusterSettings] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unknown_pools: frozenset[str] = frozenset()
    """Pools that are named but whose own settings are wrong: nothing can be said about what runs on them."""


def resolve_environment(settings: FleetSettings, *, unknown_pools: frozenset[str] = frozenset()) -> Resolved:
    """All RayClusters of an environment, and every problem across its settings."""
    resolved = Resolved(unknown_pools=unknown_pools)
    resolved.problems += _network_problems(settings.network)
    paths: dict[str, Path] = {}
    for kind, shapes, whole_node in (
        ("engineers", settings.engineers, False),
        ("clusters", settings.clusters, True),
    ):
        for name, shape in shapes.items():
            path: Path = ("environment", kind, name)
            if name in paths:
                message = f"{name!r} is both an engineer and a cluster; both would be namespace {namespace_of(name)}: rename one"
                resolved.problems.append(Problem(path, message, of_key=True))
                continue
            paths[name] = path
            cluster = _resolve(name, shape, settings.defaults, settings.pools, path, resolved, whole_node=whole_node)
            if cluster:
                (resolved.clusters if whole_node else resolved.berths).append(cluster)
    resolved.problems += _capacity_problems(settings.pools, resolved.demands, ("environment", "pools"))
    return resolved


def resolve_engineer(settings: EngineerSettings, stack: str, contract: EnvironmentContract) -> Resolved:
    """The one RayCluster of an engineer's stack, checked against the environment that it berths on."""
    resolved = Resolved()
    name = settings.name or stack
    path: Path = ("engineer",)
    if namespace_of(name) in contract.namespaces:
        message = (
            f"environment {contract.name!r} has {name!r} among its own ({contract.namespaces[namespace_of(name)]}); remove it"
            " there, or give this stack another `name`"
        )
        resolved.problems.append(Problem((*path, "name"), message))
    cluster = _resolve(name, settings.shape, contract.defaults, contract.pools, path, resolved, whole_node=False)
    if cluster:
        resolved.berths.append(cluster)
        resolved.problems += _capacity_problems(contract.pools, [*contract.demands, *resolved.demands], path)
    return resolved


def contract_of(settings: FleetSettings, stack: str, resolved: Resolved) -> EnvironmentContract:
    """What an environment's stack tells the engineers' stacks."""
    return EnvironmentContract(
        name=stack,
        pools=settings.pools,
        defaults=settings.defaults,
        demands=resolved.demands,
        namespaces={
            **{namespace_of(berth.name): f"engineers.{berth.name}" for berth in resolved.berths},
            **{namespace_of(cluster.name): f"clusters.{cluster.name}" for cluster in resolved.clusters},
        },
    )


def namespace_of(name: str) -> str:
    """The namespace of a berth or a named cluster."""
    return f"berth-{name}"


def _resolve(
    name: str,
    shape: RayShape,
    defaults: RayShape,
    pools: Mapping[str, PoolSettings],
    path: Path,
    into: Resolved,
    *,
    whole_node: bool,
) -> RayClusterSettings | None:
    """One complete RayCluster; None, with the problems in `into`, where its pools cannot be told."""
    wanted = shape.over(defaults)
    worker_pool = _choose_pool(wanted.worker.pool, pools, "worker", path, into, gpus=wanted.worker.gpus != 0)
    head_pool = _choose_pool(wanted.head.pool, pools, "head", path, into, gpus=False)
    if worker_pool is None or head_pool is None:
        return None
    base = BUILT_IN
    if whole_node:
        base = _whole_node(pools[worker_pool]).over(BUILT_IN)
        # A cluster takes the node whole unless it says otherwise itself: the defaults' worker is a berth's.
        wanted = shape.over(defaults.model_copy(update={"worker": defaults.worker.model_copy(update=_NO_SIZE)}))
    full = wanted.over(base)
    cluster = RayClusterSettings.model_validate(
        {
            "name": name,
            "workers": full.workers,
            "worker": full.worker.model_dump() | {"pool": worker_pool},
            "head": full.head.model_dump() | {"pool": head_pool},
            "image": full.image,
            "ray_version": full.ray_version,
            "env": full.env,
            "wait_until": full.wait.until,
            "wait_timeout": full.wait.timeout,
        }
    )
    into.problems += _fit_problems(cluster, pools, path)
    into.problems += _version_problems(cluster, path)
    into.demands += _demands(cluster)
    return cluster


_NO_SIZE = {"gpus": None, "cpu": None, "memory": None}


def _whole_node(pool: PoolSettings) -> RayShape:
    machine = pool.machine
    return RayShape.model_validate(
        {
            "worker": {
                "gpus": machine.gpus,
                "cpu": str(max(1, int(machine.vcpus * _WHOLE_NODE_CPU))),
                "memory": f"{max(1, int(machine.memory_gib * _WHOLE_NODE_MEMORY))}Gi",
            }
        }
    )


def _choose_pool(
    given: str | None, pools: Mapping[str, PoolSettings], role: str, path: Path, into: Resolved, *, gpus: bool
) -> str | None:
    where: Path = (*path, role, "pool")
    if given is not None:
        if given in pools:
            return given
        if given in into.unknown_pools:
            return None
        into.problems.append(Problem(where, f"there is no pool {given!r}{did_you_mean(given, pools)}"))
        return None
    if into.unknown_pools:
        return None
    fitting = sorted(name for name, pool in pools.items() if bool(pool.machine.gpus) == gpus)
    if len(fitting) == 1:
        return fitting[0]
    with_gpus = "with GPUs" if gpus else "without GPUs"
    if fitting:
        message = f"is required, since several pools are {with_gpus}: {', '.join(fitting)}"
    else:
        message = f"is required, since no pool is {with_gpus}; pools are {', '.join(sorted(pools))}"
    into.problems.append(Problem(where, message + f" (or set defaults.{role}.pool)"))
    return None


def _fit_problems(cluster: RayClusterSettings, pools: Mapping[str, PoolSettings], path: Path) -> Iterable[Problem]:
    """What can never run because one node or the whole pool is too small for it."""
    pool, worker = pools[cluster.worker.pool], cluster.worker
    machine = pool.machine
    node = f"a node of pool {worker.pool!r} ({machine.name})"
    if worker.gpus > machine.gpus:
        has = str(machine.gpus) if machine.gpus else "none"
        yield Problem((*path, "worker", "gpus"), f"a worker asks for {_gpus(worker.gpus)}, but {node} has {has}")
    elif cluster.workers_at_most * worker.gpus > pool.gpus_at_most:
        asked = cluster.workers_at_most * worker.gpus
        yield Problem(
            (*path, "workers"),
            f"{cluster.workers_at_most} workers of {_gpus(worker.gpus)} are {asked}, but pool {worker.pool!r} tops out at"
            f" {_top(pool)}",
        )
    for role, pod, its_machine in (
        ("worker", worker, machine),
        ("head", cluster.head, pools[cluster.head.pool].machine),
    ):
        if parse_quantity(pod.cpu) > its_machine.vcpus:
            yield Problem(
                (*path, role, "cpu"),
                f"a {role} asks for {pod.cpu} cores, but {its_machine.name} has {its_machine.vcpus}",
            )
        if parse_quantity(pod.memory) > its_machine.memory_gib * GIB:
            yield Problem(
                (*path, role, "memory"),
                f"a {role} asks for {pod.memory} of memory, but {its_machine.name} has {its_machine.memory_gib}Gi",
            )


def _version_problems(cluster: RayClusterSettings, path: Path) -> Iterable[Problem]:
    version = tuple(int(part) for part in cluster.ray_version.split("."))
    if version < versions.RAY_TOKEN_AUTH_SINCE:
        oldest = ".".join(map(str, versions.RAY_TOKEN_AUTH_SINCE))
        yield Problem(
            (*path, "rayVersion"),
            f"Ray {cluster.ray_version} has no token authentication, so anyone who reaches the head could run code; the oldest"
            f" that has it is {oldest}",
        )
    tag = _TAG_VERSION.search(cluster.image)
    if tag and tag[1] != cluster.ray_version:
        yield Problem(
            (*path, "image"),
            f"the image's tag says Ray {tag[1]}, but rayVersion is {cluster.ray_version}; KubeRay starts Ray by rayVersion, so"
            " make them agree",
        )


def _demands(cluster: RayClusterSettings) -> list[Demand]:
    """What the cluster asks of its pools at start: of one pool, where head and workers share it."""
    workers, worker, head = cluster.workers_at_start, cluster.worker, cluster.head
    demands: list[Demand] = []
    for pool, gpus, count, pod in (
        (worker.pool, worker.gpus, workers, worker),
        (head.pool, 0, 1, head),
    ):
        demands.append(
            Demand(
                owner=cluster.name,
                pool=pool,
                gpus=gpus * count,
                cores=parse_quantity(pod.cpu) * count,
                memory_gib=parse_quantity(pod.memory) * count / GIB,
            )
        )
    return demands


def _capacity_problems(pools: Mapping[str, PoolSettings], demands: list[Demand], root: Path) -> Iterable[Problem]:
    """Pools of which more is asked at start than they can ever have, with the sum."""
    for name, pool in pools.items():
        asking = [demand for demand in demands if demand.pool == name]
        machine, nodes = pool.machine, pool.nodes_at_most
        path = (*root, name) if root[-1] == "pools" else root
        for what, tops_out, amounts in (
            ("GPUs", Decimal(pool.gpus_at_most), [Decimal(demand.gpus) for demand in asking]),
            ("cores", Decimal(nodes * machine.vcpus), [demand.cores for demand in asking]),
            ("GiB of memory", Decimal(nodes * machine.memory_gib), [demand.memory_gib for demand in asking]),
        ):
            if sum(amounts) <= tops_out:
                continue
            shares: dict[str, Decimal] = {}
            for demand, amount in zip(asking, amounts, strict=True):
                shares[demand.owner] = shares.get(demand.owner, Decimal(0)) + amount
            listed = " + ".join(f"{owner} {_plain(amount)}" for owner, amount in shares.items() if amount)
            yield Problem(
                path,
                f"pool {name!r} tops out at {_plain(tops_out)} {what} ({nodes} × {machine.name}), but {listed} ="
                f" {_plain(sum(shares.values(), Decimal(0)))} are asked; add nodes or ask for less",
            )


def _network_problems(network: NetworkSettings) -> Iterable[Problem]:
    ranges = {key: getattr(network, key) for key in ("node_range", "pod_range", "service_range")}
    for (one, a), (other, b) in itertools.combinations(ranges.items(), 2):
        if ipaddress.IPv4Network(a).overlaps(ipaddress.IPv4Network(b)):
            alias = NetworkSettings.model_fields[other].alias or other
            yield Problem(
                ("environment", "network", alias), f"{b} overlaps {NetworkSettings.model_fields[one].alias} {a}"
            )


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _top(pool: PoolSettings) -> str:
    return f"{pool.gpus_at_most} GPUs ({pool.nodes_at_most} × {pool.machine.name} with {pool.machine.gpus})"


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
