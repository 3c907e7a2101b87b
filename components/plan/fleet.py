"""What a plan's states hold: node pools with their GPUs, and whose pods are on them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.components.cluster.gpus import claimed_gpus_of, gpus_of_pod
from berth.components.core.owner import OWNER_LABELS, STACK_LABEL
from berth.components.hardware.machines import MACHINES
from berth.components.hardware.names import CLAIMED_LABEL, CONFIG_LABEL, NO_GKE_PLUGIN_LABEL, POOL_LABEL, WHOLE_KEY
from berth.components.plan.plan import Plan, State

NODE_POOL = "gcp:container/nodePool:NodePool"
GKE_CLUSTER = "gcp:container/cluster:Cluster"
RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
RAY_JOB = "kubernetes:ray.io/v1:RayJob"
RAY_SERVICE = "kubernetes:ray.io/v1:RayService"


@dataclass(frozen=True)
class PlannedPool:
    """A node pool of a state.

    Attributes:
        name: its name, which its nodes have as a label.
        machine_type: machine type of its nodes.
        nodes: how many, in all zones together: from and to where GKE's autoscaler chooses.
        autoscaled: GKE's autoscaler chooses.
        gpus_per_node: GPUs of one node.
        product: what the GPUs are called, "" for none.
        labels: its node labels.
        settings: the resource's inputs.
    """

    name: str
    machine_type: str
    nodes: tuple[int, int]
    autoscaled: bool
    gpus_per_node: int
    product: str
    labels: Mapping[str, str]
    settings: Mapping[str, Any]

    @property
    def gpus(self) -> tuple[int, int]:
        """GPUs of all its nodes: from and to."""
        return self.nodes[0] * self.gpus_per_node, self.nodes[1] * self.gpus_per_node

    @property
    def shared(self) -> bool:
        """Several pods share one of its GPUs, so that what pods ask for are shares."""
        return self.labels.get(CONFIG_LABEL, WHOLE_KEY) != WHOLE_KEY

    @property
    def by_operator(self) -> bool:
        """The GPU Operator serves its GPUs."""
        kept_off = self.labels.get(NO_GKE_PLUGIN_LABEL) == "true"
        return bool(self.gpus_per_node) and kept_off and self.labels.get(CLAIMED_LABEL) != "true"

    def __str__(self) -> str:
        count = span(self.nodes)
        gpus = f", {span(self.gpus)} {self.product} GPUs" if self.gpus_per_node else ""
        return f"{count} × {self.machine_type}{gpus}"


def span(bounds: tuple[int, int]) -> str:
    """`8`, or `8–16`."""
    return str(bounds[1]) if bounds[0] == bounds[1] else f"{bounds[0]}–{bounds[1]}"


@dataclass(frozen=True)
class Usage:
    """What a RayCluster has on one pool.

    Attributes:
        pods: its pods.
        gpus: GPUs, or shares of them, that these ask for.
        shares: they are known to be shares.
    """

    pods: int = 0
    gpus: int = 0
    shares: bool = False


@dataclass(frozen=True)
class Occupant:
    """A RayCluster, as the one whose pods are on pools.

    Attributes:
        name: the engineer's id, the cluster's name, or that of a RayCluster that berth did not make.
        kind: `berth`, `cluster`, `job`, `service` or `RayCluster`.
        namespace: where it is.
        ray_cluster: its RayCluster's name.
        stack: the stack that made it, "" where none of berth's did.
        on: what it has on each pool, by the pool's name.
    """

    name: str
    kind: str
    namespace: str
    ray_cluster: str
    stack: str
    on: Mapping[str, Usage]


@dataclass(frozen=True)
class PlannedFleet:
    """Pools and RayClusters before and after.

    Attributes:
        stack: the plan's stack.
        before: pools as they are, by name.
        after: pools as they are to be.
        occupants: RayClusters that are there.
        asked: the cluster told of all RayClusters on it, those of other stacks among them.
    """

    stack: str
    before: Mapping[str, PlannedPool]
    after: Mapping[str, PlannedPool]
    occupants: Sequence[Occupant] = ()
    asked: bool = False
    cluster: State | None = field(default=None, repr=False)

    def on(self, pools: Iterable[str]) -> list[Occupant]:
        """The RayClusters that have pods on one of some pools."""
        wanted = set(pools)
        return [each for each in self.occupants if any(each.on[pool].pods for pool in wanted & each.on.keys())]

    @property
    def everywhere(self) -> list[str]:
        """All pools that are there; of a cluster that another made, those that somebody has pods on."""
        return list(self.before) or sorted({pool for each in self.occupants for pool in each.on})


def planned_fleet(stack: str, plan: Plan, live: Sequence[Mapping[str, Any]] | None) -> PlannedFleet:
    """The fleet that a plan is about.

    Args:
        stack: the plan's stack.
        plan: the plan.
        live: the RayClusters that the cluster has; None where it was not asked.
    """
    clusters = [step for step in plan.steps if step.type == GKE_CLUSTER]
    pools = [step for step in plan.steps if step.type == NODE_POOL]
    known: dict[tuple[str, str], Occupant] = {}
    manifests = [step.old.inputs for step in plan.steps if step.type == RAY_CLUSTER and step.old]
    # What the cluster says of a RayCluster is newer than the state: an autoscaler changes the number of workers.
    for manifest in [*manifests, *(live or ())]:
        occupant = occupant_of(manifest)
        known[occupant.namespace, occupant.ray_cluster] = occupant
    old, new = ([state for step in clusters if (state := getattr(step, side))] for side in ("old", "new"))
    return PlannedFleet(
        stack=stack,
        before={
            pool.name: pool for step in pools if step.old and (pool := planned_pool(step.old, next(iter(old), None)))
        },
        after={
            pool.name: pool for step in pools if step.new and (pool := planned_pool(step.new, next(iter(new), None)))
        },
        occupants=sorted(known.values(), key=lambda each: (each.kind != "cluster", each.name)),
        asked=live is not None,
        cluster=next(iter(old), None),
    )


def planned_pool(state: State, cluster: State | None) -> PlannedPool:
    """A node pool's resource as a pool.

    Args:
        state: the node pool's.
        cluster: its cluster's, which says in which zones a pool is that names none.
    """
    inputs = state.inputs
    config = inputs.get("nodeConfig") or {}
    machine_type = str(config.get("machineType") or "")
    machine = MACHINES.get(machine_type)
    accelerators = config.get("guestAccelerators") or []
    gpus = machine.gpus if machine else sum(int(each.get("count") or 0) for each in accelerators)
    product = machine.gpu.product if machine else ", ".join(str(each.get("type")) for each in accelerators)
    nodes, autoscaled = _nodes(inputs, zones_of(state, cluster))
    return PlannedPool(
        name=str(inputs.get("name") or ""),
        machine_type=machine_type,
        nodes=nodes,
        autoscaled=autoscaled,
        gpus_per_node=gpus,
        product=product,
        labels={str(key): str(value) for key, value in (config.get("labels") or {}).items()},
        settings=inputs,
    )


def zones_of(state: State, cluster: State | None) -> int:
    """In how many zones a node pool is: GKE counts its nodes for each."""
    its_own = state.inputs.get("nodeLocations") or state.outputs.get("nodeLocations")
    if its_own:
        return len(its_own)
    if cluster is None:
        return 1
    location = str(cluster.inputs.get("location") or "")
    others = cluster.inputs.get("nodeLocations") or cluster.outputs.get("nodeLocations") or []
    if is_zone(location):
        return len({location, *others})
    # A regional cluster that names no zones gets three (docs.cloud.google.com/kubernetes-engine, "Regional clusters").
    return len(others) or 3


def is_zone(location: str) -> bool:
    """Whether a location is a zone (`us-central1-b`) rather than a region."""
    return location[-2:-1] == "-"


def _nodes(inputs: Mapping[str, Any], zones: int) -> tuple[tuple[int, int], bool]:
    scaling = inputs.get("autoscaling")
    if not scaling:
        count = inputs.get("nodeCount", inputs.get("initialNodeCount"))
        count = count if isinstance(count, int | float) else 0
        return (int(count) * zones, int(count) * zones), False
    if "totalMaxNodeCount" in scaling:
        return (int(scaling.get("totalMinNodeCount") or 0), int(scaling["totalMaxNodeCount"])), True
    least, most = int(scaling.get("minNodeCount") or 0), int(scaling.get("maxNodeCount") or 0)
    return (least * zones, most * zones), True


def occupant_of(manifest: Mapping[str, Any]) -> Occupant:
    """A RayCluster's manifest as the one whose pods are on pools; its head counts as one pod.

    Berth tells Ray the number of GPUs only where they are shares or claimed (components/ray/manifest.py).
    """
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    labels = metadata.get("labels") or {}
    kind, name = "RayCluster", str(metadata.get("name") or "")
    for owner, label in OWNER_LABELS.items():
        if label in labels:
            kind, name = "berth" if owner == "engineer" else owner, str(labels[label])
    on: dict[str, Usage] = {}
    head = spec.get("headGroupSpec") or {}
    groups = [(1, head), *((_count(group), group) for group in spec.get("workerGroupSpecs") or [])]
    for count, group in groups if not spec.get("suspend") else ():
        template = group.get("template") or {}
        pool = ((template.get("spec") or {}).get("nodeSelector") or {}).get(POOL_LABEL)
        if pool is None:
            continue
        had = on.get(pool, Usage())
        told = "num-gpus" in (group.get("rayStartParams") or {}) and not claimed_gpus_of(template)
        shares = kind != "RayCluster" and told
        on[pool] = Usage(had.pods + count, had.gpus + count * gpus_of_pod(template), had.shares or shares)
    return Occupant(
        name=name,
        kind=kind,
        namespace=str(metadata.get("namespace") or ""),
        ray_cluster=str(metadata.get("name") or ""),
        stack=str(labels.get(STACK_LABEL) or ""),
        on=on,
    )


def _count(group: Mapping[str, Any]) -> int:
    hosts = int(group.get("numOfHosts") or 1)
    return int(group.get("replicas") or 0) * hosts
