"""Fleet of a plan: node pools with their GPUs, and the RayClusters with pods on them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from berth.components.cluster.demand import claimed_gpus_of, gpus_of_pod, replicas_of
from berth.components.core.owner import OWNER_LABELS, STACK_LABEL
from berth.components.hardware.machines import machine_of
from berth.components.hardware.names import (
    CLAIMED_LABEL,
    CONFIG_LABEL,
    NO_GKE_PLUGIN_LABEL,
    POOL_LABEL,
    WHOLE_KEY,
)
from berth.components.plan.plan import Plan, State

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
    autoscaled: bool
    """GKE's autoscaler chooses the number of nodes."""
    gpus_per_node: int
    product: str
    """Product name of the GPUs; empty for none."""
    labels: Mapping[str, str]
    settings: Mapping[str, Any]
    """Inputs of the resource."""

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
class Usage:
    """Usage of one pool by a RayCluster: pods, and their GPUs, or known shares of GPUs."""

    pods: int = 0
    gpus: int = 0
    shares: bool = False


@dataclass(frozen=True)
class Occupant:
    """RayCluster with pods on pools."""

    name: str
    """Name of the owner, or of a RayCluster that berth did not create."""
    kind: str
    """`berth`, `cluster`, `job`, `service` or `RayCluster`."""
    namespace: str
    ray_cluster: str
    stack: str
    """Stack that registers the RayCluster; empty for none of berth's."""
    on: Mapping[str, Usage]
    """Usage by the pool's name."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """Number of workers by the group's name."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the RayCluster."""
        return self.namespace, self.ray_cluster


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
    cluster: State | None = field(default=None, repr=False)
    """The GKE cluster before."""

    def on(self, pools: Iterable[str]) -> list[Occupant]:
        """Return the RayClusters that have pods on one of some pools."""
        names = set(pools)
        return [
            occupant
            for occupant in self.occupants
            if any(occupant.on[pool].pods for pool in names & occupant.on.keys())
        ]

    @property
    def everywhere(self) -> list[str]:
        """Names of all pools; on a cluster that berth did not create, of the pools with pods."""
        return list(self.before) or sorted(
            {pool for occupant in self.occupants for pool in occupant.on}
        )


def planned_fleet(stack: str, plan: Plan, live: Sequence[Mapping[str, Any]] | None) -> PlannedFleet:
    """Return the fleet of a plan; `live` is None where the cluster was not asked."""
    clusters = [step for step in plan.steps if step.type == GKE_CLUSTER]
    pools = [step for step in plan.steps if step.type == NODE_POOL]
    known: dict[tuple[str, str], Occupant] = {}
    manifests = [step.old.inputs for step in plan.steps if step.type == RAY_CLUSTER and step.old]
    # The cluster's RayClusters are newer than the state's: autoscalers change their workers.
    for manifest in [*manifests, *(live or ())]:
        occupant = occupant_of(manifest)
        known[occupant.key] = occupant
    old = next((step.old for step in clusters if step.old), None)
    new = next((step.new for step in clusters if step.new), None)
    return PlannedFleet(
        stack=stack,
        before={
            pool.name: pool for step in pools if step.old and (pool := planned_pool(step.old, old))
        },
        after={
            pool.name: pool for step in pools if step.new and (pool := planned_pool(step.new, new))
        },
        occupants=sorted(
            known.values(), key=lambda occupant: (occupant.kind != "cluster", occupant.name)
        ),
        asked=live is not None,
        cluster=old,
    )


def planned_pool(state: State, cluster: State | None) -> PlannedPool:
    """Return the pool of a resource; the cluster has the zones of a pool that names none."""
    inputs = state.inputs
    config = inputs.get("nodeConfig") or {}
    machine_type = str(config.get("machineType") or "")
    accelerator: Mapping[str, Any] = next(iter(config.get("guestAccelerators") or []), {})
    machine = machine_of(
        machine_type, str(accelerator.get("type") or ""), int(accelerator.get("count") or 0)
    )
    nodes, autoscaled = _nodes(inputs, zones_of(state, cluster))
    return PlannedPool(
        name=str(inputs.get("name") or ""),
        machine_type=machine_type,
        nodes=nodes,
        autoscaled=autoscaled,
        gpus_per_node=machine.gpus,
        product=machine.gpu.product,
        labels={str(key): str(value) for key, value in (config.get("labels") or {}).items()},
        settings=inputs,
    )


def zones_of(state: State, cluster: State | None) -> int:
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
    scaling = inputs.get("autoscaling")
    if not scaling:
        given = inputs.get("nodeCount", inputs.get("initialNodeCount"))
        count = int(given) * zones if isinstance(given, int | float) else 0
        return Span(count, count), False
    if "totalMaxNodeCount" in scaling:
        return Span(
            int(scaling.get("totalMinNodeCount") or 0), int(scaling["totalMaxNodeCount"])
        ), True
    least, most = int(scaling.get("minNodeCount") or 0), int(scaling.get("maxNodeCount") or 0)
    return Span(least * zones, most * zones), True


def occupant_of(manifest: Mapping[str, Any]) -> Occupant:
    """Return the occupant that a RayCluster's manifest describes; its head counts as one pod.

    Berth gives Ray the number of GPUs only where they are shares or claimed (ray/manifest.py).
    """
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    labels = metadata.get("labels") or {}
    kind, name = "RayCluster", str(metadata.get("name") or "")
    for owner, label in OWNER_LABELS.items():
        if label in labels:
            kind, name = "berth" if owner == "engineer" else owner, str(labels[label])
    on: dict[str, Usage] = {}
    head = spec.get("headGroupSpec") or {}
    workers = spec.get("workerGroupSpecs") or []
    groups = [(1, head), *((replicas_of(group), group) for group in workers)]
    for count, group in groups if not spec.get("suspend") else ():
        template = group.get("template") or {}
        pool = ((template.get("spec") or {}).get("nodeSelector") or {}).get(POOL_LABEL)
        if pool is None:
            continue
        had = on.get(pool, Usage())
        shares = kind != "RayCluster" and "num-gpus" in (group.get("rayStartParams") or {})
        shares = shares and not claimed_gpus_of(template)
        on[pool] = Usage(
            had.pods + count, had.gpus + count * gpus_of_pod(template), had.shares or shares
        )
    return Occupant(
        name=name,
        kind=kind,
        namespace=str(metadata.get("namespace") or ""),
        ray_cluster=str(metadata.get("name") or ""),
        stack=str(labels.get(STACK_LABEL) or ""),
        on=on,
        workers={}
        if spec.get("suspend")
        else {str(group.get("groupName")): replicas_of(group) for group in workers},
    )
