"""Rules of the GPUs of a head."""

from berth.components.core.rules import Rules
from berth.components.ray.placed import PlacedCluster
from berth.components.ray.settings import HeadShape

HEADS = Rules[PlacedCluster](HeadShape)
"""Rules of the head of a RayCluster."""


@HEADS.problem("gpus")
def gpus_that_a_head_does_not_get(placed: PlacedCluster) -> str | None:
    """A head has GPUs that its node counts, without claims and NICs."""
    gpus = placed.cluster.head.gpus
    pool = placed.pools[placed.cluster.head.pool]
    if gpus > pool.per_node:
        return (
            f"the head asks for {pool.counted(gpus)}, but a node of pool {pool.name!r}"
            f" ({pool.settings.machine.name}) has {pool.counted(pool.per_node)}"
        )
    if gpus > 1 and pool.profile.facts.one_each:
        return (
            f"the head asks for {gpus} shares of pool {pool.name!r}, whose profile refuses more"
            f" than one a pod ({pool.profile.facts.one_each}); ask for 1"
        )
    if gpus and pool.settings.by_dra:
        return (
            f"pods of pool {pool.name!r} claim their GPUs, which only workers do; write the head"
            " without GPUs, and a worker"
        )
    if gpus and pool.settings.rdma in ("managed", "networks"):
        return (
            f"a pod on pool {pool.name!r} takes all GPUs and RDMA NICs of its node, and a head gets"
            " no NICs; write the head without GPUs, and a worker"
        )
    return None


@HEADS.warning("rayGpus")
def more_gpus_for_ray_than_the_head_has(placed: PlacedCluster) -> str | None:
    """Ray hands out as many GPUs of a head as its pod has."""
    head = placed.cluster.head
    if head.ray_gpus is None or head.ray_gpus <= head.gpus:
        return None
    in_the_pod = placed.pools[head.pool].counted(head.gpus) if head.gpus else "none"
    return (
        f"Ray hands out {head.ray_gpus} GPUs of a head that has {in_the_pod}: a task that is given"
        " one of the others finds none; take `rayGpus` out for as many as there are"
    )
