"""Fleet of a plan: node pools with their GPUs, and the RayClusters with pods on them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.hardware.machines import machine_of
from berth.components.hardware.names import (
    CLAIMED_LABEL,
    CONFIG_LABEL,
    NO_GKE_PLUGIN_LABEL,
    WHOLE_KEY,
)
from berth.components.plan.occupants import Occupant, occupant_of
from berth.components.plan.plan import Plan, ResourceState, Step

NODE_POOL = "gcp:container/nodePool:NodePool"
GKE_CLUSTER = "gcp:container/cluster:Cluster"
RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"

Number = TypeVar("Number")


class Span(NamedTuple, Generic[Number]):
    """Least and largest value, where GKE's autoscaler chooses; else both are the same."""

    min: Number
    max: Number


def span(bounds: tuple[int, int]) -> str:
    """Return `8`, or `8–16`."""
    return str(bounds[1]) if bounds[0] == bounds[1] else f"{bounds[0]}–{bounds[1]}"


@dataclass(frozen=True)
class PlannedPool:
    """Node pool before or after a plan."""

    name: str
    machine_type: str
    nodes: Span[int]
    """Number of nodes in all zones together."""
    zones: int
    """Number of its zones."""
    autoscaled: bool
    """GKE's autoscaler chooses the number of nodes."""
    gpus_per_node: int
    product: str
    """Product name of the GPUs; empty for none."""
    labels: Mapping[str, str]
    settings: Mapping[str, Any]
    """Inputs of the resource."""

    @property
    def most_in_zone(self) -> int:
        """Most nodes in one zone; an autoscaler with a bound for all zones may use one of them."""
        scaling = self.settings.get("autoscaling") or {}
        return self.nodes.max if "totalMaxNodeCount" in scaling else self.nodes.max // self.zones

    @property
    def gpus(self) -> Span[int]:
        """GPUs of all nodes."""
        return Span(self.nodes.min * self.gpus_per_node, self.nodes.max * self.gpus_per_node)

    @property
    def shared(self) -> bool:
        """Several pods share a GPU, so that pods ask for shares."""
        return self.labels.get(CONFIG_LABEL, WHOLE_KEY) != WHOLE_KEY

    @property
    def by_operator(self) -> bool:
        """The GPU Operator serves the GPUs."""
        without_plugin = self.labels.get(NO_GKE_PLUGIN_LABEL) == "true"
        return (
            bool(self.gpus_per_node) and without_plugin and self.labels.get(CLAIMED_LABEL) != "true"
        )

    def __str__(self) -> str:
        gpus = f", {span(self.gpus)} {self.product} GPUs" if self.gpus_per_node else ""
        return f"{span(self.nodes)} × {self.machine_type}{gpus}"


@dataclass(frozen=True)
class PlannedFleet:
    """Pools and RayClusters before and after a plan."""

    stack: str
    before: Mapping[str, PlannedPool]
    after: Mapping[str, PlannedPool]
    occupants: Sequence[Occupant] = ()
    """RayClusters before."""
    asked: bool = False
    """The cluster was asked for all RayClusters, those of other stacks included."""
    cluster: ResourceState | None = field(default=None, repr=False)
    """The GKE cluster before."""
    gpu_units: Mapping[str, GpuUnit] = field(default_factory=dict)
    """Units in which pods get a pool's GPUs, before, by the pool's name; of known pools only."""

    def on(self, pools: Iterable[str]) -> list[Occupant]:
        """Return the RayClusters that have pods on one of some pools."""
        names = set(pools)
        return [occupant for occupant in self.occupants if occupant.has_pods_on(names)]

    @property
    def everywhere(self) -> list[str]:
        """Names of all pools; on a cluster that berth did not create, of the pools with pods."""
        if self.before:
            return list(self.before)
        return sorted(set().union(*(occupant.on for occupant in self.occupants)))


def planned_fleet(
    stack: str,
    plan: Plan,
    live: Sequence[Mapping[str, Any]] | None,
    gpu_units: Mapping[str, GpuUnit] | None = None,
) -> PlannedFleet:
    """Return the fleet of a plan.

    Args:
        stack: stack of the plan.
        plan: the engine's plan.
        live: RayClusters of the cluster; None where the cluster was not asked.
        gpu_units: what one GPU of a pool is to pods, before, by the pool's name.
    """
    clusters = [step for step in plan.steps if step.type == GKE_CLUSTER]
    pools = [step for step in plan.steps if step.type == NODE_POOL]
    old_cluster = next((step.old for step in clusters if step.old), None)
    new_cluster = next((step.new for step in clusters if step.new), None)
    return PlannedFleet(
        stack=stack,
        before=_pools_by_name((step.old for step in pools), old_cluster),
        after=_pools_by_name((step.new for step in pools), new_cluster),
        occupants=_occupants(plan.steps, live or ()),
        asked=live is not None,
        cluster=old_cluster,
        gpu_units=gpu_units or {},
    )


def _pools_by_name(
    states: Iterable[ResourceState | None], cluster: ResourceState | None
) -> dict[str, PlannedPool]:
    pools = {}
    for state in states:
        if state is not None:
            pool = planned_pool(state, cluster)
            pools[pool.name] = pool
    return pools


def _occupants(steps: Iterable[Step], live: Iterable[Mapping[str, Any]]) -> list[Occupant]:
    """Return the RayClusters of a stack's state and of the cluster, named clusters first.

    The cluster's RayClusters are newer than the state's: autoscalers change their workers.
    """
    by_key: dict[tuple[str, str], Occupant] = {}
    in_state = [step.old.inputs for step in steps if step.type == RAY_CLUSTER and step.old]
    for manifest in (*in_state, *live):
        occupant = occupant_of(manifest)
        by_key[occupant.key] = occupant
    return sorted(by_key.values(), key=lambda occupant: (occupant.kind != "cluster", occupant.name))


def planned_pool(state: ResourceState, cluster: ResourceState | None) -> PlannedPool:
    """Return the pool of a resource; the cluster has the zones of a pool that names none."""
    inputs = state.inputs
    config = inputs.get("nodeConfig") or {}
    machine_type = str(config.get("machineType") or "")
    accelerator: Mapping[str, Any] = next(iter(config.get("guestAccelerators") or []), {})
    machine = machine_of(
        machine_type, str(accelerator.get("type") or ""), int(accelerator.get("count") or 0)
    )
    zones = zones_of(state, cluster)
    nodes, autoscaled = _nodes(inputs, zones)
    return PlannedPool(
        name=str(inputs.get("name") or ""),
        machine_type=machine_type,
        nodes=nodes,
        zones=zones,
        autoscaled=autoscaled,
        gpus_per_node=machine.gpus,
        product=machine.gpu.product,
        labels={str(key): str(value) for key, value in (config.get("labels") or {}).items()},
        settings=inputs,
    )


def zones_of(state: ResourceState, cluster: ResourceState | None) -> int:
    """Return the number of a node pool's zones: GKE counts its nodes for each."""
    own = state.inputs.get("nodeLocations") or state.outputs.get("nodeLocations")
    if own:
        return len(own)
    if cluster is None:
        return 1
    location = str(cluster.inputs.get("location") or "")
    others = cluster.inputs.get("nodeLocations") or cluster.outputs.get("nodeLocations") or []
    if is_zone(location):
        return len({location, *others})
    # A regional cluster without zones gets three
    # (docs.cloud.google.com/kubernetes-engine, "Regional clusters").
    return len(others) or 3


def is_zone(location: str) -> bool:
    """Return whether a location is a zone (`us-central1-b`) rather than a region."""
    return location[-2:-1] == "-"


def _nodes(inputs: Mapping[str, Any], zones: int) -> tuple[Span[int], bool]:
    """Return a pool's number of nodes in all zones, and whether GKE's autoscaler chooses it."""
    scaling = inputs.get("autoscaling")
    if not scaling:
        of_zone = inputs.get("nodeCount", inputs.get("initialNodeCount"))
        count = int(of_zone) * zones if isinstance(of_zone, int | float) else 0
        return Span(count, count), False
    if "totalMaxNodeCount" in scaling:
        least = int(scaling.get("totalMinNodeCount") or 0)
        return Span(least, int(scaling["totalMaxNodeCount"])), True
    least = int(scaling.get("minNodeCount") or 0) * zones
    most = int(scaling.get("maxNodeCount") or 0) * zones
    return Span(least, most), True
