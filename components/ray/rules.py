"""Rules for one RayCluster on its pools: of Ray, of its image, and of its pods' features."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.components.fabric import alignment_warning, fabric_problems
from berth.components.nested import nested_problems, nested_warning
from berth.components.ray.fit import fit_problems, memory_warning, ray_gpus_warning, version_problems, waiting_warning
from berth.components.ray.image import image_warning
from berth.components.ray.settings import RayClusterSettings
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
    worker = cluster.worker
    yield from fit_problems(cluster, pools, path)
    yield from fabric_problems(cluster, pools, path)
    yield from version_problems(cluster, pools, path)
    yield from home_problems(cluster.home, pools[cluster.head.pool], path)
    yield from volume_problems(cluster.volumes, _shared_ssds(pools[worker.pool]), worker.pool, path)
    for name in sorted(cluster.env.keys() & cluster.secrets.keys()):
        yield Problem((*path, "secrets", name), "is in `env` too; take one of the two out")
    yield from nested_problems(cluster.nested_containers, worker.gpus, pools[worker.pool], path)


def cluster_warnings(cluster: RayClusterSettings, pools: Pools, path: Path) -> Iterable[Problem]:
    """Yield the warnings about a RayCluster that runs, but likely not as intended."""
    warnings = (
        memory_warning(cluster, pools, path),
        ray_gpus_warning(cluster, pools, path),
        waiting_warning(cluster, pools, path),
        alignment_warning(cluster, pools, path),
        nested_warning(cluster.nested_containers, path),
        image_warning(cluster, path),
    )
    yield from filter(None, warnings)


def _shared_ssds(pool: Pool) -> int:
    """Return the number of local SSDs of a node on which folders of pods are."""
    ssds = pool.settings.local_ssds
    return 0 if ssds and ssds.use == "block" else pool.settings.local_ssd_count
