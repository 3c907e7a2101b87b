"""Rules for one RayCluster on its pools: of Ray, of its image, and of its pods' features."""

from collections.abc import Callable, Iterable

from berth.components.core.bounds import Bounds
from berth.components.core.problems import Problem
from berth.components.core.table import beside, broken
from berth.components.fabric import fabric_problems
from berth.components.lifecycle import lifecycle_problems
from berth.components.ray.fit import fit_problems, sizes_of, version_problems
from berth.components.ray.image import image_warnings
from berth.components.ray.place import Placed
from berth.components.ray.secret_manager import secret_problems
from berth.components.ray.settings import BerthShape, RayClusterSettings
from berth.components.ray.storage import home_problems, share_problems, volume_problems
from berth.components.sharing import Pool, Pools

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod that says whether GKE's autoscaler may end it. Upgrades and drains of nodes
ignore it (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler)."""

Rule = Callable[[Placed], Iterable[Problem]]
"""Rule of a RayCluster."""


def _groups(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    head_arm64 = pools[cluster.head.pool].settings.machine.series.arm64
    for group in cluster.groups:
        pool = pools[group.pool]
        objects = {"cluster": cluster, "group": group, "pool": pool, "head_arm64": head_arm64}
        yield from fabric_problems("nics", group, pool, (*path, *group.within))
        yield from broken(beside(__file__)["problems"], path, **objects)
    # NCCL's settings are those of all groups, and count in the ones that have GPUs.
    for group in [group for group in cluster.groups if group.gpus or group.nics] or cluster.groups:
        yield from fabric_problems("nccl", group, pools[group.pool], path)


def _storage(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    yield from home_problems(cluster.home, pools[cluster.head.pool], path)
    yield from share_problems(cluster.home, cluster.volumes, path)
    ssds = {name: _shared_ssds(pools[name]) for name in cluster.pools}
    fewest = min(ssds, key=lambda name: ssds[name])
    yield from volume_problems(cluster.volumes, ssds[fewest], fewest, path)


def _variables(placed: Placed) -> Iterable[Problem]:
    cluster, path = placed.cluster, placed.path
    for name in sorted(cluster.env.keys() & cluster.secrets.keys()):
        yield Problem((*path, "secrets", name), "is in `env` too; take one of the two out")
    yield from secret_problems(cluster.secrets, path, projects=placed.ground.existing)


def _lifecycle(placed: Placed) -> Iterable[Problem]:
    if isinstance(placed.written, BerthShape):
        yield from lifecycle_problems(placed.written.lifecycle, placed.cluster.lifecycle, placed.path)


def cluster_problems(placed: Placed) -> list[Problem]:
    """Return the problems of a RayCluster on its pools; those of several groups may be one."""
    rules: tuple[Rule, ...] = (fit_problems, _groups, version_problems, _storage, _variables, _lifecycle)
    return list(dict.fromkeys(problem for rule in rules for problem in rule(placed)))


def cluster_warnings(placed: Placed) -> list[Problem]:
    """Return what works of a RayCluster, but likely not as intended."""
    return list(dict.fromkeys(_warnings(placed)))


def _warnings(placed: Placed) -> Iterable[Problem]:
    cluster, pools, path = placed.cluster, placed.pools, placed.path
    for group in cluster.groups:
        pool, within = pools[group.pool], (*path, *group.within)
        objects = {"cluster": cluster, "group": group, "pool": pool, **sizes_of(group, pool)}
        yield from broken(beside(__file__)["warnings_of_groups"], within, **objects)
        yield from fabric_problems("alignment", group, pool, within)
        yield from broken(beside(__file__)["warnings"], path, **objects)
    yield from image_warnings(cluster, path)


def may_be_evicted(cluster: RayClusterSettings, pools: Pools) -> bool:
    """Return whether GKE's autoscaler may end a head to remove its node, and nobody allows it."""
    nodes = pools[cluster.head.pool].settings.nodes
    annotations = (cluster.head.pod_template.get("metadata") or {}).get("annotations") or {}
    return isinstance(nodes, Bounds) and nodes.min < nodes.max and SAFE_TO_EVICT not in annotations


def _shared_ssds(pool: Pool) -> int:
    """Return the number of local SSDs of a node on which folders of pods are."""
    ssds = pool.settings.local_ssds
    return 0 if ssds and ssds.use == "block" else pool.settings.local_ssd_count
