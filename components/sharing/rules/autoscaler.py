"""Rules of pools that GKE's cluster autoscaler scales, by what it knows about their GPUs.

Sources: kubernetes/autoscaler at 55c37cd5 (cluster-autoscaler/cloudprovider/gce/templates.go,
BuildCapacity: the template of a node that is not there has nvidia.com/gpu for each accelerator;
gce_cloud_provider.go, TemplateNodeInfo: it has no ResourceSlices) and
kubernetes-sigs/cluster-autoscaler at 33c3f97b (pkg/processors/customresources/gpu_processor.go: a
node with an accelerator label and no nvidia.com/gpu counts as unready;
pkg/processors/nodeinfosprovider/mixed_nodeinfos_processor.go: such a node is never a template;
pkg/clusterstate/clusterstate.go, IsClusterHealthy). GKE's own autoscaler,
GoogleCloudPlatform/cluster-autoscaler at 7d25050, is built from them;
pkg/cloudprovider/gke/dynamicresources says which devices it puts on a node that is not there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from berth.components.core.bounds import Bounds
from berth.components.core.rules import Breach, Rules
from berth.components.gke import PoolSettings
from berth.components.hardware.names import GPU_RESOURCE
from berth.components.sharing.modes import WHOLE, Facts
from berth.components.sharing.settings import SharingSettings

_MOST_UNREADY_NODES = 3
"""Default of the cluster autoscaler's flag ok-total-unready-count (pkg/config/flags/flags.go)."""

_MOST_UNREADY_PERCENT = 45
"""Default of its flag max-total-unready-percentage."""


@dataclass(frozen=True)
class ScaledPool:
    """A pool whose number of nodes GKE's cluster autoscaler chooses.

    Attributes:
        pool: the pool, with bounds that differ.
        facts: facts about its GPUs, by the way in which they are shared.
    """

    pool: PoolSettings
    facts: Facts

    @property
    def from_zero(self) -> bool:
        """Whether the pool may have no node."""
        return self.pool.nodes_at_least == 0

    @property
    def way_to_a_node(self) -> str:
        """Edit with which the pool always has a node."""
        if self.pool.capacity.kind != "flex-start":
            return f"write nodes: {{min: 1, max: {self.pool.nodes_at_most}}}, or a number of nodes"
        on_networks = self.pool.rdma == "networks"
        without = "write `rdma: none`" if on_networks else "take `gpuAllocation` out"
        return (
            "take machines that can stay (a reservation or spot) with one node or more, or"
            f" {without}"
        )


SCALED_POOLS = Rules[ScaledPool](PoolSettings)
"""Rules of one pool that GKE's cluster autoscaler scales."""

ALL_POOLS = Rules[SharingSettings](SharingSettings)
"""Rules of the pools of one autoscaler together."""


@SCALED_POOLS.problem("nodes")
def resource_that_the_autoscaler_does_not_know(scaled: ScaledPool) -> Iterator[Breach]:
    """The cluster autoscaler takes nodes with GPUs but without nvidia.com/gpu for broken ones."""
    if scaled.facts.resource != GPU_RESOURCE:
        yield Breach(
            f"GKE's cluster autoscaler knows GPUs as {GPU_RESOURCE} only, and nodes of this pool"
            f" advertise {scaled.facts.resource}: it would add no node for pods that wait, and take"
            " the pool's nodes for broken ones; write a number of nodes, or"
            f" {scaled.facts.counted_with} {scaled.pool.sharing!r}",
            rests_on=(("environment", "sharing", scaled.pool.sharing or ""),),
        )


@SCALED_POOLS.problem("nodes")
def claimed_gpus_from_zero(scaled: ScaledPool) -> str | None:
    """The autoscaler knows the claimable GPUs of some future nodes only.

    Source: deprecated_machine_types_gpu_config.go in pkg/cloudprovider/gke/machinetypes of GKE's
    autoscaler: GPUs up to H100 80GB.
    """
    pool = scaled.pool
    counted_on = pool.rdma == "networks" or pool.machine.gpu.claims_from_zero
    if not pool.by_dra or not scaled.from_zero or counted_on:
        return None
    return (
        "pods claim the GPUs of this pool, and GKE's cluster autoscaler does not know which a node"
        f" of {pool.machine.name} has that is not there yet: it would never add the first one;"
        f" {scaled.way_to_a_node}"
    )


@SCALED_POOLS.problem("nodes")
def claimed_nics_from_zero(scaled: ScaledPool) -> str | None:
    """The autoscaler knows the NICs of future nodes with managed DRANET only.

    Source: dranet.go in pkg/cloudprovider/gke/machinetypes of GKE's autoscaler.
    """
    if scaled.pool.rdma != "networks" or not scaled.from_zero:
        return None
    return (
        "pods claim the RDMA NICs of this pool, and GKE's cluster autoscaler does not know which"
        " NICs a node has that is not there yet: it would never add the first one;"
        f" {scaled.way_to_a_node}"
    )


@SCALED_POOLS.warning("nodes")
def pods_before_the_gpus_are_shared(scaled: ScaledPool) -> str | None:
    """Some ways to share GPUs are not in effect when the autoscaler has just added a node."""
    if scaled.facts.scaling_risk and scaled.facts.resource == GPU_RESOURCE:
        return f"{scaled.facts.scaling_risk}; write a number of nodes"
    return None


@ALL_POOLS.warning("pools.*.sharing")
def nodes_that_stop_the_autoscaler(settings: SharingSettings) -> Iterator[Breach]:
    """The autoscaler stops for all pools where too many nodes count as broken."""
    resources = {name: _facts_of(pool, settings).resource for name, pool in settings.pools.items()}
    unseen = [name for name, resource in resources.items() if resource != GPU_RESOURCE]
    scaled = [name for name in scaled_pools(settings) if name not in unseen]
    broken_nodes = sum(settings.pools[name].nodes_at_most for name in unseen)
    other_nodes = sum(
        pool.nodes_at_least for name, pool in settings.pools.items() if name not in unseen
    )
    share = broken_nodes * 100 / max(broken_nodes + other_nodes, 1)
    if not scaled or broken_nodes <= _MOST_UNREADY_NODES or share <= _MOST_UNREADY_PERCENT:
        return
    yield Breach(
        f"GKE's cluster autoscaler knows GPUs as {GPU_RESOURCE} only, and takes the {broken_nodes}"
        f" nodes that advertise another resource ({', '.join(unseen)}) for broken ones; it stops"
        f" for all pools ({', '.join(scaled)}) where more than {_MOST_UNREADY_NODES} nodes and"
        f" {_MOST_UNREADY_PERCENT} % of all are broken: have fewer such nodes, or let them"
        f" advertise {GPU_RESOURCE}",
        at=("pools", unseen[0], "sharing"),
    )


def scaled_pools(settings: SharingSettings) -> dict[str, ScaledPool]:
    """Return the pools whose number of nodes GKE's cluster autoscaler chooses, by name."""
    return {
        name: ScaledPool(pool, _facts_of(pool, settings))
        for name, pool in settings.pools.items()
        if isinstance(pool.nodes, Bounds) and pool.nodes.min < pool.nodes.max
    }


def _facts_of(pool: PoolSettings, settings: SharingSettings) -> Facts:
    profile = settings.sharing.get(pool.sharing or "", WHOLE) if pool.by_operator else WHOLE
    return profile.facts
