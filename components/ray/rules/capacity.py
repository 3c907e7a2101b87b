"""Rules of pools that all RayClusters together ask for more than they can ever have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.words import counted
from berth.components.gke import PoolSettings
from berth.components.hardware.allocatable import GIB
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.demand import Demand, room_on_a_node
from berth.components.ray.numbers import decimal_text
from berth.components.ray.service_settings import ServiceShape
from berth.components.sharing import Pool, Pools

_SHOWN = 10
"""Terms of a sum that a message shows."""


@dataclass(frozen=True)
class DemandedPool:
    """A pool, and the demands of RayClusters on it."""

    pool: Pool
    demands: Sequence[Demand]


@dataclass(frozen=True)
class _Resource:
    """A resource of a pool.

    Attributes:
        name: noun for the resource, in the plural.
        most: the largest amount that the pool can have.
        made_of: source of the amount in words.
        demanded: amount that each owner demands.
    """

    name: str
    most: Decimal
    made_of: str
    demanded: Mapping[str, Decimal]


@dataclass(frozen=True)
class PooledCluster:
    """A RayCluster of a RayService, on the pools of its environment."""

    cluster: RayClusterSettings
    pools: Pools


CAPACITY = Rules[DemandedPool](PoolSettings)
"""Rules of a pool with all demands on it."""

UPGRADES = Rules[PooledCluster](ServiceShape)
"""Rules of a RayService whose edits make a second RayCluster."""


def capacity_problems(
    pools: Pools, demands: Iterable[Demand], root: SettingPath
) -> Iterator[Problem]:
    """Yield the pools whose demands at the start are more than they can ever have, with the sum.

    Args:
        pools: pools of the environment.
        demands: demands of all RayClusters that run at the same time.
        root: path of the pools' settings, or of one owner whose demands these are.
    """
    demands = list(demands)
    for name, pool in pools.items():
        on_pool = DemandedPool(pool, [demand for demand in demands if demand.pool == name])
        path = (*root, name) if root[-1] == "pools" else root
        yield from CAPACITY.problems(on_pool, path)


def second_cluster_warnings(
    cluster: RayClusterSettings, pools: Pools, path: SettingPath
) -> Iterator[Problem]:
    """Yield a warning for each pool without room for the second cluster that an edit makes."""
    return UPGRADES.warnings(PooledCluster(cluster, pools), path)


@CAPACITY.problem()
def demands_above_the_capacity(demanded: DemandedPool) -> Iterator[Breach]:
    """A pool has the GPUs, NICs, cores and memory that RayClusters demand at the start."""
    for resource in _resources(demanded):
        asked = sum(resource.demanded.values(), Decimal(0))
        if asked > resource.most:
            yield Breach(
                f"pool {demanded.pool.name!r} has {decimal_text(resource.most)} {resource.name}"
                f" ({resource.made_of}); {decimal_text(asked)} are requested:"
                f" {_terms(resource.demanded)}; add nodes or ask for less"
            )


@UPGRADES.warning("upgradeStrategy")
def no_room_for_a_second_cluster(service: PooledCluster) -> Iterator[Breach]:
    """Pools have room for the RayCluster that an edit makes beside the one that runs."""
    cluster = service.cluster
    for name in cluster.pools:
        pool = service.pools[name]
        groups = [group for group in cluster.groups if group.pool == name]
        gpus = sum(group.gpus * group.at_start for group in groups)
        if gpus and 2 * gpus > pool.at_most:
            yield Breach(
                "an edit of the cluster makes a second one beside it, and its"
                f" {pool.counted(gpus)} find no room: pool {name!r} has"
                f" {pool.counted(pool.at_most)} ({pool.made_of}), so the edit waits until more are"
                " there; add nodes, or write `upgradeStrategy: Recreate`, which interrupts the"
                " service"
            )


def _resources(demanded: DemandedPool) -> Iterator[_Resource]:
    """Yield the resources of a pool with the demands of each owner."""
    pool = demanded.pool
    demands = demanded.demands
    nodes = pool.settings.nodes_at_most
    nics = pool.settings.nics
    room = room_on_a_node(pool)
    # A pool without nodes has nothing, also where nobody says how large a node is.
    cores = nodes * room.cores if nodes else Decimal(0)
    memory = nodes * room.memory / GIB if nodes else Decimal(0)
    machines = f"{nodes} × {pool.settings.machine.name}"
    gpus_by_owner = _by_owner(demands, [Decimal(demand.gpus) for demand in demands])
    yield _Resource(f"{pool.unit}s", Decimal(pool.at_most), pool.made_of, gpus_by_owner)
    # A pool without NICs is a problem of each RayCluster that requests some (fabric), and that a
    # pool has no nodes is said once, of its GPUs.
    if nodes and nics:
        nics_by_owner = _by_owner(demands, [Decimal(demand.nics) for demand in demands])
        most = Decimal(nodes * nics)
        yield _Resource("RDMA NICs", most, f"{machines} with {nics}", nics_by_owner)
    cores_by_owner = _by_owner(demands, [demand.cores for demand in demands])
    yield _Resource("cores", cores, machines, cores_by_owner)
    memory_by_owner = _by_owner(demands, [demand.memory_gib for demand in demands])
    yield _Resource("GiB of memory", memory, machines, memory_by_owner)
    # What an existing pool has is unknown. GKE's own pods, a dozen on a node, come on top.
    if nodes and pool.settings.max_pods_per_node:
        pods = pool.settings.max_pods_per_node
        pods_by_owner = _by_owner(demands, [Decimal(demand.pods) for demand in demands])
        yield _Resource("pods", Decimal(nodes * pods), f"{machines} with {pods}", pods_by_owner)


def _by_owner(demands: Sequence[Demand], amounts: Sequence[Decimal]) -> dict[str, Decimal]:
    """Return the sum of amounts by the owner of the demands that they are of."""
    sums: dict[str, Decimal] = {}
    for demand, amount in zip(demands, amounts, strict=True):
        sums[demand.owner] = sums.get(demand.owner, Decimal(0)) + amount
    return sums


def _terms(amounts: Mapping[str, Decimal]) -> str:
    """Return the terms of a sum by owner; of many the largest ones, and one for all others."""
    terms = [(owner, amount) for owner, amount in amounts.items() if amount]
    if len(terms) > _SHOWN:
        terms.sort(key=lambda term: -term[1])
        others = sum((amount for _, amount in terms[_SHOWN:]), Decimal(0))
        terms[_SHOWN:] = [(counted(len(terms) - _SHOWN, "other"), others)]
    return " + ".join(f"{owner} {decimal_text(amount)}" for owner, amount in terms)
