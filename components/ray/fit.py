"""Fit of RayClusters on their pools: one by one, and all together."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from berth.components.core.problems import Problem, SettingPath
from berth.components.core.settings import Settings
from berth.components.core.table import beside, broken
from berth.components.core.types import Name, parse_quantity
from berth.components.core.words import counted
from berth.components.hardware import versions
from berth.components.ray.manifest import RAY_HEAD, RAY_WORKER
from berth.components.ray.place import Placed
from berth.components.ray.pod_template import added_requests
from berth.components.ray.settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.storage import mounts_buckets
from berth.components.sharing import Pool, Pools

GIB = 2**30
_UNKNOWN = Decimal("Infinity")
_SHOWN = 10
"""Terms of a sum that a message shows."""
_KEPT = ": GKE keeps the rest"

# Ray's own images name CUDA as -cu124
# (https://docs.ray.io/en/latest/ray-overview/installation.html#docker-source-images).
_TAG_CUDA = re.compile(r":[^/]*-cu(\d\d)(\d{1,2})(?:-[^/:]*)?$")
_TAG_VERSION = re.compile(r":v?(\d+\.\d+\.\d+)(?:[-.].*)?$")


class Demand(Settings):
    """Demand of one RayCluster on one pool at the start, as sums over its pods."""

    owner: str
    """Owner of the RayCluster: `alice`."""
    pool: Name
    gpus: int
    """GPUs, or shares on a pool that shares them."""
    nics: int = 0
    """RDMA NICs."""
    cores: Decimal
    memory_gib: Decimal


def fit_problems(placed: Placed) -> Iterable[Problem]:
    """Yield requests that never fit: a node or the pool is too small, or has another resource."""
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    for group in cluster.groups:
        yield from _gpu_problems(group, pools[group.pool], path)
        yield from _size_problems("worker", group, cluster, pools, (*path, *group.within))
    yield from _size_problems("head", cluster.head, cluster, pools, (*path, "head"))
    pool = pools[cluster.head.pool]
    facts = {
        "head": cluster.head,
        "asked": pool.counted(cluster.head.gpus),
        "has": pool.counted(pool.per_node),
    }
    yield from broken(beside(__file__)["head"], (*path, "head"), pool=pool, **facts)


def _gpu_problems(group: WorkerGroup, pool: Pool, path: SettingPath) -> Iterable[Problem]:
    """Return requests for GPUs and cores of a group that its nodes or its pool cannot give."""
    facts = {
        "in": ".".join(group.within),
        "count_in": ".".join(group.workers_within),
        **sizes_of(group, pool),
    }
    return broken(
        beside(__file__)["fit"],
        path,
        group=group,
        pool=pool,
        machine=pool.settings.machine,
        **facts,
    )


def sizes_of(group: WorkerGroup, pool: Pool) -> dict[str, Any]:
    """Return sizes of a group and of its pool, as numbers and in words, for the tables of rules."""
    offered, shared = pool.offer, pool.shared
    return {
        "asked": pool.counted(group.gpus),
        "has": pool.counted(pool.per_node) if shared else str(pool.per_node or "none"),
        "worker_has": pool.counted(group.gpus) if group.gpus else "none",
        "in_all": group.at_most * group.gpus,
        "pool_has": pool.counted(pool.at_most),
        "whole": counted(pool.settings.machine.gpus, "whole GPU"),
        "cpu": parse_quantity(group.cpu),
        "memory": parse_quantity(group.memory),
        "cpu_limit": parse_quantity(group.cpu_limit),
        "gpu_memory": parse_quantity(group.gpu_memory)
        if group.gpu_memory and offered
        else Decimal(0),
        "share": offered.memory_gib * GIB if offered else Decimal(0),
        "share_gib": plain(round(offered.memory_gib, 1)) if offered else "",
    }


def _size_problems(
    role: str,
    pod: Head | WorkerGroup,
    cluster: RayClusterSettings,
    pools: Pools,
    where: SettingPath,
) -> Iterable[Problem]:
    machine = pools[pod.pool].settings.machine
    cores, memory = _requests(pod, cluster)
    has_cores, has_memory = _for_pods(pools[pod.pool])
    node = f"a node of pool {pod.pool!r} ({machine.name})"
    facts = {
        "cores": cores,
        "has_cores": has_cores,
        "offered_cores": plain(has_cores),
        "beside_cores": _beside(cores - parse_quantity(pod.cpu)),
        "bytes": memory,
        "has_bytes": has_memory * GIB,
        "offered_memory": plain(has_memory),
        "beside_memory": _beside((memory - parse_quantity(pod.memory)) / GIB, "Gi"),
        "of_cores": "",
        "of_memory": "",
    }
    if machine.known:
        facts |= {
            "of_cores": f" of its {machine.vcpus}{_KEPT}",
            "of_memory": f" of its {machine.memory_gib}Gi{_KEPT}",
        }
    yield from broken(beside(__file__)["sizes"], where, role=role, pod=pod, node=node, **facts)


def _for_pods(pool: Pool) -> tuple[Decimal, Decimal]:
    """Return cores, and GiB of memory in whole tenths, that a node of a pool offers to pods.

    Both are without end where nobody says how large a node is.
    """
    offered = pool.settings.for_pods
    if offered is None:
        return _UNKNOWN, _UNKNOWN
    return Decimal(offered.cpu_millis) / 1000, Decimal(offered.memory * 10 // GIB) / 10


def _requests(pod: Head | WorkerGroup, cluster: RayClusterSettings) -> tuple[Decimal, Decimal]:
    """Return cores and bytes of memory that a pod requests, with those of added containers."""
    ray = RAY_WORKER if isinstance(pod, WorkerGroup) else RAY_HEAD
    cores, memory = (
        added_requests(pod.pod_template, ray, resource) for resource in ("cpu", "memory")
    )
    if mounts_buckets(cluster.volumes):
        cores, memory = (
            cores + parse_quantity(cluster.gcs_fuse.cpu),
            memory + parse_quantity(cluster.gcs_fuse.memory),
        )
    return parse_quantity(pod.cpu) + cores, parse_quantity(pod.memory) + memory


def _beside(amount: Decimal, unit: str = "") -> str:
    return f" and its sidecars for {plain(amount)}{unit}" if amount else ""


def version_problems(placed: Placed) -> Iterable[Problem]:
    """Yield problems of versions: Ray without tokens, another Ray in the image, CUDA too old."""
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    version = tuple(int(part) for part in cluster.ray_version.split("."))
    tag = _TAG_VERSION.search(cluster.image)
    facts = {
        "cluster": cluster,
        "without_tokens": version < versions.RAY_TOKEN_AUTH_SINCE,
        "oldest": ".".join(map(str, versions.RAY_TOKEN_AUTH_SINCE)),
        "tag": tag[1] if tag else None,
    }
    yield from broken(beside(__file__)["ray_versions"], path, **facts)
    cuda = _TAG_CUDA.search(cluster.image)
    of_head = [cluster.head.pool] if cluster.head.gpus else []
    for pool in dict.fromkeys([*(group.pool for group in cluster.groups if group.gpus), *of_head]):
        gpu = pools[pool].settings.machine.gpu
        if cuda and (int(cuda[1]), int(cuda[2])) < gpu.oldest_cuda:
            yield from broken(
                beside(__file__)["cuda_versions"], path, cuda=cuda, gpu=gpu, pool=pool
            )


def second_cluster_warnings(
    cluster: RayClusterSettings, pools: Pools, path: SettingPath
) -> Iterable[Problem]:
    """Yield a warning for each pool without room for the second cluster that an edit makes."""
    for pool in (pools[name] for name in cluster.pools):
        gpus = sum(
            group.gpus * group.at_start for group in cluster.groups if group.pool == pool.name
        )
        if gpus and 2 * gpus > pool.at_most:
            facts = {"pool": pool, "asked": pool.counted(gpus), "has": pool.counted(pool.at_most)}
            yield from broken(beside(__file__)["second_cluster"], path, **facts)


def demands_of(cluster: RayClusterSettings) -> list[Demand]:
    """Return the demands of a cluster on its pools at the start."""
    pods: list[tuple[int, int, int, Head | WorkerGroup]] = [(cluster.head.gpus, 0, 1, cluster.head)]
    pods[:0] = [(group.gpus, group.nics, group.at_start, group) for group in cluster.groups]
    return [
        Demand(
            owner=cluster.name,
            pool=pod.pool,
            gpus=gpus * count,
            nics=nics * count,
            cores=cores * count,
            memory_gib=memory * count / GIB,
        )
        for gpus, nics, count, pod in pods
        for cores, memory in [_requests(pod, cluster)]
    ]


def capacity_problems(pools: Pools, demands: list[Demand], root: SettingPath) -> Iterable[Problem]:
    """Yield the pools whose demands at the start are more than they can ever have, with the sum."""
    for name, pool in pools.items():
        asking = [demand for demand in demands if demand.pool == name]
        machine, nodes, per_node = (
            pool.settings.machine,
            pool.settings.nodes_at_most,
            pool.settings.nics,
        )
        cores, memory = (nodes * each if nodes else Decimal(0) for each in _for_pods(pool))
        nics = nodes * per_node
        path = (*root, name) if root[-1] == "pools" else root
        whole = f"{nodes} × {machine.name}"
        for what, tops_out, made_of, amounts in (
            (
                f"{pool.unit}s",
                Decimal(pool.at_most),
                pool.made_of,
                [Decimal(demand.gpus) for demand in asking],
            ),
            # A pool without NICs is a problem of each RayCluster that requests some
            # (fabric/rules.py).
            (
                "RDMA NICs",
                Decimal(nics),
                f"{whole} with {per_node}",
                [Decimal(demand.nics if nics else 0) for demand in asking],
            ),
            ("cores", cores, whole, [demand.cores for demand in asking]),
            ("GiB of memory", memory, whole, [demand.memory_gib for demand in asking]),
        ):
            if sum(amounts) <= tops_out:
                continue
            shares: dict[str, Decimal] = {}
            for demand, amount in zip(asking, amounts, strict=True):
                shares[demand.owner] = shares.get(demand.owner, Decimal(0)) + amount
            facts = {
                "name": name,
                "most": plain(tops_out),
                "what": what,
                "made_of": made_of,
                "listed": _sum(shares),
            }
            asked = plain(sum(shares.values(), Decimal(0)))
            yield from broken(beside(__file__)["capacity"], path, asked=asked, **facts)


def _sum(shares: Mapping[str, Decimal]) -> str:
    """Return the terms of a sum by owner; of many the largest ones, and one for all others."""
    terms = [(owner, share) for owner, share in shares.items() if share]
    if len(terms) > _SHOWN:
        terms.sort(key=lambda term: -term[1])
        others = sum((share for _, share in terms[_SHOWN:]), Decimal(0))
        terms[_SHOWN:] = [(counted(len(terms) - _SHOWN, "other"), others)]
    return " + ".join(f"{owner} {plain(share)}" for owner, share in terms)


def plain(amount: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    return f"{amount.normalize():f}"
