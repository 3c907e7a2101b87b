"""Rules of complete RayClusters together: what they ask of the environment, and their defaults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic.alias_generators import to_camel

from berth.components.core.rules import Breach, Rules
from berth.components.core.words import names_in_words
from berth.components.fabric import pinned_by_default
from berth.components.gke import Addon
from berth.components.ray import (
    BerthShape,
    RayClusterSettings,
    head_may_be_evicted,
    workers_may_be_evicted,
)
from berth.components.sharing import Pools
from berth.stacks.settings.environment import USES, EnvironmentSettings

_PODS_OF_THE_OPERATOR = 500
"""Pods of Ray for which KubeRay's operator has memory by its chart: 512Mi, of which it needs about
500 MB (values.yaml of its chart, `resources`)."""

_USE_OF_ADDONS: Mapping[Addon, str] = {
    "gcs_fuse": "mounts a bucket",
    "filestore": "mounts a Filestore volume",
    "secret_sync": "has a secret of Secret Manager",
}
"""Use of an add-on of GKE by a RayCluster."""


@dataclass(frozen=True)
class EnvironmentClusters:
    """An environment with its complete RayClusters.

    Attributes:
        settings: the environment.
        clusters: all RayClusters, with those of jobs and services.
    """

    settings: EnvironmentSettings
    clusters: Sequence[RayClusterSettings]

    @cached_property
    def pods(self) -> int:
        """Most pods of Ray that the settings allow."""
        return sum(cluster.workers_at_most + 1 for cluster in self.clusters)


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


@ENVIRONMENT_CLUSTERS.problem("cluster.gcsFuse", "cluster.filestore", "cluster.secretSync")
def addons_that_are_off_and_in_use(environment: EnvironmentClusters) -> Iterator[Breach]:
    """Volumes and secrets need GKE's drivers."""
    for addon, use in _USE_OF_ADDONS.items():
        users = [cluster.name for cluster in environment.clusters if USES[addon](cluster)]
        if users and getattr(environment.settings.cluster, addon) is False:
            yield Breach(
                f"is false, but {', '.join(users)} {use}; take it out",
                at=("cluster", to_camel(addon)),
            )


@ENVIRONMENT_CLUSTERS.warning("defaults.nccl.profile")
def variables_of_an_older_gib(environment: EnvironmentClusters) -> str | None:
    """Variables for gIB belong to one release of it, and those of the default are of July 2025."""
    pinned = [
        cluster.name
        for cluster in environment.clusters
        if pinned_by_default(cluster.written_nccl, cluster.groups)
    ]
    if not pinned:
        return None
    return (
        f"workers of {names_in_words(pinned, 'and')} have gIB's variables of July 2025, with which"
        " a newer gIB may end a job; write `gib` for those of the installed one, which restarts"
        " these workers, or name a profile in their own `nccl`"
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
        f"heads of {names_in_words(may_go, 'and')} are on a pool that shrinks: GKE's autoscaler may"
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
        f"workers of {names_in_words(may_go, 'and')} are on a pool that shrinks: GKE's autoscaler"
        f" may end a worker, with its tasks and actors, {_TO_REMOVE_A_NODE}; write worker:"
        f" {_KEPT}, which keeps the node while a worker is on it and restarts the workers once"
        f" ({_ALLOWED})"
    )
