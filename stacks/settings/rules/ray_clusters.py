"""Rules of complete RayClusters together: what they ask of the environment, and their defaults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic.alias_generators import to_camel

from berth.components.core.rules import Breach, Rules
from berth.components.core.words import names_in_words
from berth.components.fabric import pinned_by_default
from berth.components.gke import Addon
from berth.components.ray import BerthShape, RayClusterSettings, may_be_evicted
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
class Heads:
    """RayClusters whose heads stand on some pools.

    Attributes:
        clusters: RayClusters that take settings from one place: `defaults`, or a stack of its own.
        pools: pools of the environment.
    """

    clusters: Sequence[RayClusterSettings]
    pools: Pools


ENVIRONMENT_CLUSTERS = Rules[EnvironmentClusters](EnvironmentSettings)
"""Rules of all RayClusters of an environment."""

HEADS = Rules[Heads](BerthShape)
"""Rules of the heads of RayClusters."""


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


@HEADS.warning("head.podTemplate")
def heads_that_the_autoscaler_ends(heads: Heads) -> str | None:
    """GKE's autoscaler removes nodes with pods on them, unless an annotation forbids it.

    The annotation is no default, since it would restart each head that runs.
    """
    evicted = [cluster.name for cluster in heads.clusters if may_be_evicted(cluster, heads.pools)]
    if not evicted:
        return None
    return (
        f"heads of {names_in_words(evicted, 'and')} are on a pool that shrinks, and to remove a"
        " node GKE's autoscaler ends the head on it, with all its jobs and actors; write head:"
        " {podTemplate: {metadata: {annotations:"
        ' {cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}}}},'
        ' which restarts them once ("true" allows it)'
    )
