"""Rules of the node pools of a cluster together: one way to RDMA, a place for GKE's own pods."""

from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.gke.settings import GkeSettings

ALL_POOLS = Rules[GkeSettings](GkeSettings)
"""Rules of the pools of every cluster together."""

CREATED_POOLS_TOGETHER = Rules[GkeSettings](GkeSettings)
"""Rules of the pools of a cluster that berth creates."""


@ALL_POOLS.problem("pools.*.rdma")
def two_ways_to_rdma(environment: GkeSettings) -> Iterator[Breach]:
    """GKE's managed DRANET and DraNet are one driver's name."""
    on_networks = environment.pools_with_rdma("networks")
    on_managed = environment.pools_with_rdma("managed")
    if on_networks and on_managed:
        yield Breach(
            f"pool {on_managed[0]!r} has `rdma: managed`, and one cluster has one way to RDMA:"
            " GKE's managed DRANET and DraNet both serve driver dra.net; give all pools the same",
            at=("pools", on_networks[0], "rdma"),
        )


@CREATED_POOLS_TOGETHER.problem("pools.*.taints", rests_on=["pools"])
def no_pool_for_pods_without_tolerations(environment: GkeSettings) -> Iterator[Breach]:
    """Some pool has room for pods that tolerate no taint of a pool's own.

    Neither the charts' Deployments (KubeRay 1.6.2; GPU Operator v26.7.0) nor GKE's cluster DNS
    tolerates such a taint, and GKE itself taints nodes with GPUs beside pools without GPUs.
    """
    without_gpus = {name: pool for name, pool in environment.pools.items() if not pool.machine.gpus}
    candidates = without_gpus or environment.pools
    for pool in candidates.values():
        if all(taint.effect == "PreferNoSchedule" for taint in pool.taints):
            return
    yield Breach(
        "no pool without GPUs is without taints, and the pods of KubeRay and of GKE itself, such"
        " as the cluster's DNS, would wait for a node for ever; leave one such pool untainted",
        at=("pools", next(iter(candidates)), "taints"),
    )


@CREATED_POOLS_TOGETHER.problem("pools", rests_on=["environment.pools"])
def only_flex_start(environment: GkeSettings) -> str | None:
    """GKE's own pods need nodes that stay."""
    if any(pool.capacity.kind != "flex-start" for pool in environment.pools.values()):
        return None
    return (
        "every pool is flex-start, whose nodes go after seven days at most, so that GKE's own pods"
        " and the operators would have no place; add a pool of another capacity, for example cpu:"
        " {machineType: n2-standard-8, nodes: 1}"
    )
