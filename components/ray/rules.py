"""Rules for one RayCluster on its pools: of Ray, of its image, and of its pods' features."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from berth.components.core.problems import Path, Problem
from berth.components.fabric import alignment_warning, nccl_problems, nic_problem
from berth.components.nested import nested_problems, nested_warning
from berth.components.ray.fit import fit_problems, memory_warning, ray_gpus_warning, version_problems, waiting_warning
from berth.components.ray.image import image_warning
from berth.components.ray.settings import RayClusterSettings
from berth.components.ray.shares import share_problems
from berth.components.ray.storage import home_problems
from berth.components.ray.volumes import volume_problems
from berth.components.sharing import Pool, Pools


def cluster_problems(cluster: RayClusterSettings, pools: Pools, path: Path) -> Iterable[Problem]:
    """Yield the problems of a RayCluster on its pools.

    Args:
        cluster: the complete settings.
        pools: node pools of the environment by name.
        path: path of the RayCluster's settings.
    """
    yield from fit_problems(cluster, pools, path)
    for group in cluster.groups:
        if problem := nic_problem(group, pools, (*path, *group.within)):
            yield problem
    # NCCL's settings are those of all groups, and count in the ones that have GPUs.
    with_gpus = [group for group in cluster.groups if group.worker.gpus or group.worker.nics]
    of_nccl = [nccl_problems(group, pools, path) for group in with_gpus or cluster.groups]
    yield from dict.fromkeys(chain(*of_nccl))
    yield from version_problems(cluster, pools, path)
    yield from home_problems(cluster.home, pools[cluster.head.pool], path)
    yield from share_problems(cluster.home, cluster.volumes, path)
    ssds = {name: _shared_ssds(pools[name]) for name in cluster.pools}
    fewest = min(ssds, key=lambda name: ssds[name])
    yield from volume_problems(cluster.volumes, ssds[fewest], fewest, path)
    for name in sorted(cluster.env.keys() & cluster.secrets.keys()):
        yield Problem((*path, "secrets", name), "is in `env` too; take one of the two out")
    of_nested = [
        nested_problems(cluster.nested_containers, group.worker.gpus, pools[group.worker.pool], path)
        for group in cluster.groups
    ]
    yield from dict.fromkeys(chain(*of_nested))


def cluster_warnings(cluster: RayClusterSettings, pools: Pools, path: Path) -> Iterable[Problem]:
    """Yield the warnings about a RayCluster that runs, but likely not as intended."""
    of_groups = [
        warning
        for group in cluster.groups
        for warning in (
            memory_warning(group, pools, path),
            ray_gpus_warning(group, pools, path),
            waiting_warning(group, cluster.wait, pools, path),
            alignment_warning(group, pools, (*path, *group.within)),
        )
    ]
    warnings = (*of_groups, nested_warning(cluster.nested_containers, path), image_warning(cluster, path))
    yield from dict.fromkeys(filter(None, warnings))


def _shared_ssds(pool: Pool) -> int:
    """Return the number of local SSDs of a node on which folders of pods are."""
    ssds = pool.settings.local_ssds
    return 0 if ssds and ssds.use == "block" else pool.settings.local_ssd_count
