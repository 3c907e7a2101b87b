"""Rules of RayClusters, RayJobs and RayServices; here, those of one RayCluster on its pools."""

from collections.abc import Iterator

from berth.components.core.problems import Problem
from berth.components.fabric import nccl_problems, nic_problems, nic_warnings
from berth.components.lifecycle import lifecycle_problems
from berth.components.ray.placed import PlacedCluster, PlacedPod, placed_groups
from berth.components.ray.rules.containers import CONTAINERS
from berth.components.ray.rules.features import CLUSTER_FEATURES, GROUP_FEATURES
from berth.components.ray.rules.group_gpus import GPU_REQUESTS, GROUP_GPUS
from berth.components.ray.rules.head import HEADS
from berth.components.ray.rules.home import HOMES, PlacedHome
from berth.components.ray.rules.image import IMAGES, IMAGES_OF_GROUPS
from berth.components.ray.rules.pod_sizes import HEAD_SIZES, PODS, WORKERS
from berth.components.ray.rules.pod_templates import pod_template_warnings
from berth.components.ray.rules.secrets import SECRETS
from berth.components.ray.rules.volumes import VOLUMES
from berth.components.ray.settings import BerthShape


def cluster_problems(placed: PlacedCluster) -> list[Problem]:
    """Return the problems of a RayCluster on its pools; those of several groups may be one."""
    return list(dict.fromkeys(_problems(placed)))


def cluster_warnings(placed: PlacedCluster) -> list[Problem]:
    """Return what works of a RayCluster, but likely not as intended."""
    return list(dict.fromkeys(_warnings(placed)))


def _problems(placed: PlacedCluster) -> Iterator[Problem]:
    yield from _problems_of_pods(placed)
    yield from _problems_of_groups(placed)
    yield from IMAGES.problems(placed, placed.path)
    yield from _problems_of_storage(placed)
    yield from SECRETS.problems(placed, placed.path)
    if isinstance(placed.written, BerthShape):
        written = placed.written.lifecycle
        yield from lifecycle_problems(written, placed.cluster.lifecycle, placed.path)


def _problems_of_pods(placed: PlacedCluster) -> Iterator[Problem]:
    for group in placed_groups(placed):
        path = (*placed.path, *group.group.settings_path)
        yield from GPU_REQUESTS.problems(group, placed.path)
        yield from WORKERS.problems(group, path)
        worker = PlacedPod(placed, "worker", group.group)
        yield from PODS.problems(worker, path)
        yield from CONTAINERS.problems(worker, path)
    at_head = (*placed.path, "head")
    head = PlacedPod(placed, "head", placed.cluster.head)
    yield from PODS.problems(head, at_head)
    yield from CONTAINERS.problems(head, at_head)
    yield from HEADS.problems(placed, at_head)


def _problems_of_groups(placed: PlacedCluster) -> Iterator[Problem]:
    groups = placed.cluster.groups
    for group in placed_groups(placed):
        path = (*placed.path, *group.group.settings_path)
        yield from nic_problems(group.group, group.pool, path)
        yield from GROUP_FEATURES.problems(group, placed.path)
        yield from IMAGES_OF_GROUPS.problems(group, placed.path)
    # NCCL's settings are those of all groups, and count in the ones that have GPUs.
    for group_with_nccl in [group for group in groups if group.gpus or group.nics] or groups:
        pool = placed.pools[group_with_nccl.pool]
        yield from nccl_problems(group_with_nccl, pool, placed.path)


def _problems_of_storage(placed: PlacedCluster) -> Iterator[Problem]:
    if placed.cluster.home:
        home = PlacedHome(placed.cluster.home, placed.pools[placed.cluster.head.pool])
        yield from HOMES.problems(home, placed.path)
    yield from VOLUMES.problems(placed, placed.path)


def _warnings(placed: PlacedCluster) -> Iterator[Problem]:
    for group in placed_groups(placed):
        path = (*placed.path, *group.group.settings_path)
        yield from WORKERS.warnings(group, path)
        yield from CONTAINERS.warnings(PlacedPod(placed, "worker", group.group), path)
        yield from GROUP_GPUS.warnings(group, path)
        yield from nic_warnings(group.group, group.pool, path)
        yield from GROUP_FEATURES.warnings(group, placed.path)
    yield from pod_template_warnings(placed)
    yield from CLUSTER_FEATURES.warnings(placed.cluster, placed.path)
    yield from IMAGES.warnings(placed, placed.path)
    yield from HEAD_SIZES.warnings(placed.cluster, (*placed.path, "head"))
    yield from HEADS.warnings(placed, (*placed.path, "head"))
    head = PlacedPod(placed, "head", placed.cluster.head)
    yield from CONTAINERS.warnings(head, (*placed.path, "head"))
