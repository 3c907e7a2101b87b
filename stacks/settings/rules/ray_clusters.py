"""Rules of complete RayClusters together: what they ask of the environment, and their defaults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic.alias_generators import to_camel

from berth.components.core.image import full_name
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import parse_quantity
from berth.components.core.words import first_names
from berth.components.gke import Addon, PoolSettings
from berth.components.hardware.allocatable import GIB
from berth.components.ray import (
    BerthShape,
    RayClusterSettings,
    disk_of_a_node,
    head_may_be_evicted,
    workers_may_be_evicted,
)
from berth.components.sharing import Pools
from berth.stacks.settings.environment import USES, EnvironmentSettings

_PODS_OF_THE_OPERATOR = 500
"""Pods of Ray for which KubeRay's operator has memory by its chart: 512Mi, of which it needs about
500 MB (values.yaml of its chart, `resources`)."""

_DOCKER_HUB = "docker.io/"
_ANONYMOUS_PULLS = 100
"""Pulls without a login that Docker Hub allows an address in six hours."""

_USE_OF_ADDONS: Mapping[Addon, str] = {
    "gcs_fuse": "a bucket is mounted by",
    "filestore": "a Filestore volume is mounted by",
    "secret_sync": "a secret of Secret Manager is read by",
}
"""Use of an add-on of GKE by a RayCluster."""


@dataclass(frozen=True)
class EnvironmentClusters:
    """An environment with its complete RayClusters.

    Attributes:
        settings: the environment.
        clusters: all RayClusters, with those of jobs and services.
        pools: pools of the environment, as far as they are right.
    """

    settings: EnvironmentSettings
    clusters: Sequence[RayClusterSettings]
    pools: Pools

    @cached_property
    def pods(self) -> int:
        """Most pods of Ray that the settings allow."""
        return sum(cluster.workers_at_most + 1 for cluster in self.clusters)

    @property
    def nodes_share_an_address(self) -> bool:
        """Whether nodes reach the internet by the address of berth's own Cloud NAT."""
        cluster = self.settings.cluster
        network = self.settings.network
        is_created = not cluster.existing and not network.existing
        return is_created and cluster.private_nodes and network.nat

    def public_images_of(self, pool: str) -> list[str]:
        """Return the images of Docker Hub that nodes of a pool pull without a login."""
        images: dict[str, None] = {}
        for cluster in self.clusters:
            pools = [group.pool for group in cluster.groups if group.at_most]
            if pool not in (cluster.head.pool, *pools) or cluster.image_pull_secrets:
                continue
            if full_name(cluster.image).startswith(_DOCKER_HUB):
                images[full_name(cluster.image)] = None
        return list(images)


@dataclass(frozen=True)
class PlacedTogether:
    """RayClusters that take settings from one place, on the pools of their environment.

    Attributes:
        clusters: RayClusters with settings of `defaults`, or the one of a stack of its own.
        pools: pools of the environment.
    """

    clusters: Sequence[RayClusterSettings]
    pools: Pools


ENVIRONMENT_CLUSTERS = Rules[EnvironmentClusters](EnvironmentSettings)
"""Rules of all RayClusters of an environment."""

PLACED = Rules[PlacedTogether](BerthShape)
"""Rules of the heads and workers of RayClusters together."""

_TO_REMOVE_A_NODE = "to remove a node that is less than half in use for ten minutes, at any hour"
_KEPT = (
    "{podTemplate: {metadata: {annotations:"
    ' {cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}}}}'
)
_ALLOWED = '"true" allows it'


@ENVIRONMENT_CLUSTERS.warning("operators.kuberay.values")
def memory_of_the_operator(environment: EnvironmentClusters) -> str | None:
    """KubeRay's operator needs about 1 MB for each pod of Ray."""
    kuberay = environment.settings.operators.kuberay
    pods = environment.pods
    is_sized = "resources" in (kuberay.values or {})
    if kuberay.source != "chart" or is_sized or pods <= _PODS_OF_THE_OPERATOR:
        return None
    resources = f"{{cpu: 1, memory: {pods // _PODS_OF_THE_OPERATOR}Gi}}"
    return (
        f"the settings allow {pods} pods of Ray, and KubeRay's operator has 512Mi of memory, which"
        f" its chart gives it for about {_PODS_OF_THE_OPERATOR}: it would be killed again and"
        f" again, and repair nothing; write values: {{resources: {{limits: {resources}, requests:"
        f" {resources}}}}}"
    )


@ENVIRONMENT_CLUSTERS.warning("defaults.image")
def pulls_beyond_the_limit_of_docker_hub(environment: EnvironmentClusters) -> str | None:
    """Docker Hub counts anonymous pulls by address, and private nodes share one.

    A new node has no images. Nodes that come and go count twice, since each may be back within
    hours; a smaller number stays below the limit in most hours. Source: "Docker Hub pull usage and
    limits" (https://docs.docker.com/docker-hub/usage/pulls).
    """
    settings = environment.settings
    images: list[str] = []
    pulls = 0
    for name, pool in settings.pools.items():
        of_pool = environment.public_images_of(name)
        pulls += len(of_pool) * pool.nodes_at_most * (2 if _comes_and_goes(pool) else 1)
        images += of_pool
    if not environment.nodes_share_an_address or pulls <= _ANONYMOUS_PULLS:
        return None
    repository = f"{settings.in_region}-docker.pkg.dev/{settings.project}/docker-hub"
    copy = f"{repository}/{images[0].removeprefix(_DOCKER_HUB)}"
    return (
        f"nodes may pull images of Docker Hub {pulls} times in a few hours, all from the address of"
        f" Cloud NAT, and Docker Hub allows an address {_ANONYMOUS_PULLS} pulls in six hours: pods"
        " on nodes that come later would wait for their image; pull by Artifact Registry, with a"
        f" repository that `berth docs gke#image-pulls` creates: image: {copy}"
    )


def _comes_and_goes(pool: PoolSettings) -> bool:
    """Return whether the nodes of a pool go while their settings stay."""
    return pool.capacity.kind in ("spot", "flex-start") or pool.nodes_at_least < pool.nodes_at_most


@ENVIRONMENT_CLUSTERS.warning("isolation.ephemeralStorage")
def more_disk_than_any_node_has(environment: EnvironmentClusters) -> str | None:
    """A limit above what every node has holds nothing back: neighbors pay for it."""
    settings = environment.settings
    written = settings.isolation.ephemeral_storage
    names = {name for item in environment.clusters for name in (item.head.pool, *item.pools)}
    disks = {
        name: disk_of_a_node(environment.pools[name], created=settings.cluster.existing is None)
        for name in sorted(names)
    }
    known = {name: disk for name, disk in disks.items() if disk is not None}
    if not written or not known or len(known) < len(disks):
        return None
    pool = max(known, key=lambda name: known[name])
    if parse_quantity(written) <= known[pool]:
        return None
    return (
        f"is {written}, and a node leaves {int(known[pool] / GIB)}Gi of its disk to pods at most"
        f" (pool {pool!r}), so that one pod may fill the disk of its neighbors; take this line out"
        " for what each berth's nodes have, or write less"
    )


@ENVIRONMENT_CLUSTERS.problem("cluster.gcsFuse", "cluster.filestore", "cluster.secretSync")
def addons_that_are_off_and_in_use(environment: EnvironmentClusters) -> Iterator[Breach]:
    """Volumes and secrets need GKE's drivers."""
    for addon, use in _USE_OF_ADDONS.items():
        users = [cluster.name for cluster in environment.clusters if USES[addon](cluster)]
        if users and getattr(environment.settings.cluster, addon) is False:
            yield Breach(
                f"is false, but {use} {first_names(users)}; take it out",
                at=("cluster", to_camel(addon)),
            )


@PLACED.warning("head.podTemplate")
def heads_that_the_autoscaler_may_end(placed: PlacedTogether) -> str | None:
    """GKE's autoscaler may remove nodes with heads on them, unless an annotation forbids it.

    The annotation is no default, since it would restart each head that runs.
    """
    may_go = [item.name for item in placed.clusters if head_may_be_evicted(item, placed.pools)]
    if not may_go:
        return None
    return (
        f"heads of {first_names(may_go)} are on a pool that shrinks: GKE's autoscaler may"
        f" end a head, with all its jobs and actors, {_TO_REMOVE_A_NODE}; write head:"
        f" {_KEPT}, which keeps the node and restarts the heads once ({_ALLOWED})"
    )


@PLACED.warning("worker.podTemplate")
def workers_that_the_autoscaler_may_end(placed: PlacedTogether) -> str | None:
    """GKE's autoscaler may remove nodes with workers on them, unless an annotation forbids it."""
    may_go = [item.name for item in placed.clusters if workers_may_be_evicted(item, placed.pools)]
    if not may_go:
        return None
    return (
        f"workers of {first_names(may_go)} are on a pool that shrinks: GKE's autoscaler"
        f" may end a worker, with its tasks and actors, {_TO_REMOVE_A_NODE}; write worker:"
        f" {_KEPT}, which keeps the node while a worker is on it and restarts the workers once"
        f" ({_ALLOWED})"
    )
