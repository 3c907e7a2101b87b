"""`berth status`: the fleet of an environment, from its stack's outputs and its API server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic.alias_generators import to_camel
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cli.console import out
from cli.environment import StatusError, brought_up
from components.berth import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL
from components.cluster_api import NODES, PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object
from components.nodes import is_ready
from components.placement import POOL_LABEL
from components.ray.condition import condition_of, gpus_in, gpus_of, gpus_of_pod
from components.ray.readiness import reasons_of
from stacks.settings.pools import Pool as OfferedPool
from stacks.settings.pools import offered
from stacks.settings.resolve import EnvironmentContract


@dataclass(frozen=True)
class Pool:
    """A node pool.

    Attributes:
        name: the pool.
        machine_type: its nodes' machine type.
        nodes: nodes that are there.
        nodes_at_least: nodes that it always has, by its settings.
        nodes_ready: those that are ready.
        gpus: GPUs, or shares of them, that the nodes offer to pods.
        gpus_in_use: those that pods on them hold.
        sharing: how GPUs are shared, empty where they are not.
    """

    name: str
    machine_type: str
    nodes: int
    nodes_at_least: int
    nodes_ready: int
    gpus: int
    gpus_in_use: int
    sharing: str


@dataclass(frozen=True)
class Ray:
    """A berth or a named cluster.

    Attributes:
        name: the engineer's id or the cluster's name.
        namespace: where it is.
        ray_cluster: name of its RayCluster.
        stack: the stack that made it.
        pool: the node pool of its workers.
        state: KubeRay's state.
        ready: head and all workers are ready, or it is suspended.
        workers_ready: workers that are ready.
        workers_desired: workers that there should be.
        gpus: GPUs that its workers ask for.
        reasons: why it is not ready.
    """

    name: str
    namespace: str
    ray_cluster: str
    stack: str
    pool: str
    state: str
    ready: bool
    workers_ready: int
    workers_desired: int
    gpus: int
    reasons: list[str]


@dataclass(frozen=True)
class Fleet:
    """All that is there of one environment."""

    stack: str
    environment: str
    pools: list[Pool]
    berths: list[Ray]
    clusters: list[Ray]

    @property
    def ready(self) -> bool:
        """Every RayCluster is ready."""
        return all(each.ready for each in (*self.berths, *self.clusters))

    def as_json(self) -> dict[str, Any]:
        """For programs, with camelCase keys."""
        return {to_camel(key): _camel(value) for key, value in asdict(self).items()}


def fleet_of(stack: str) -> Fleet:
    """The fleet of an environment's stack; of an engineer's stack the environment's pools and that berth.

    Raises:
        NoSuchStackError: no such stack.
        NotUpError: it was never brought up.
        StatusError: Pulumi or the API server can't be asked.
    """
    up = brought_up(stack)
    try:
        fleet = observe(ClusterApi(up.kubeconfig), stack, up.contract)
    except ClusterError as error:
        raise StatusError(f"stack {up.stack}: {error}") from None
    if up.stack == stack:
        return fleet
    return replace(fleet, berths=[berth for berth in fleet.berths if berth.stack == stack], clusters=[])


def observe(api: ClusterApi, stack: str, contract: EnvironmentContract) -> Fleet:
    """The fleet as the API server has it.

    Raises:
        ClusterError: it can't be asked.
    """
    nodes, _ = api.list(NODES)
    pods, _ = api.list(PODS, fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    found, _ = api.list(RAY_CLUSTERS, labelSelector=f"{ENVIRONMENT_LABEL}={contract.name}")
    rays = {
        kind: [_ray(api, each, label) for each in found if label in each["metadata"]["labels"]]
        for kind, label in OWNER_LABELS.items()
    }
    return Fleet(
        stack=stack,
        environment=contract.name,
        pools=[_pool(pool, nodes, pods) for pool in offered(contract.pools, contract.sharing).values()],
        berths=rays["engineer"],
        clusters=rays["cluster"],
    )


def _pool(pool: OfferedPool, nodes: Iterable[Object], pods: Iterable[Object]) -> Pool:
    mine = [node for node in nodes if (node["metadata"].get("labels") or {}).get(POOL_LABEL) == pool.name]
    names = {node["metadata"]["name"] for node in mine}
    return Pool(
        name=pool.name,
        machine_type=pool.settings.machine_type,
        nodes=len(mine),
        nodes_at_least=pool.settings.nodes_at_least,
        nodes_ready=sum(is_ready(node) for node in mine),
        gpus=sum(gpus_in(node["status"].get("allocatable") or {}) for node in mine),
        gpus_in_use=sum(gpus_of_pod(pod) for pod in pods if pod["spec"].get("nodeName") in names),
        sharing=pool.sharing,
    )


def _ray(api: ClusterApi, cluster: Object, owner_label: str) -> Ray:
    metadata, condition = cluster["metadata"], condition_of(cluster)
    group = cluster["spec"]["workerGroupSpecs"][0]
    return Ray(
        name=metadata["labels"][owner_label],
        namespace=metadata["namespace"],
        ray_cluster=metadata["name"],
        stack=metadata["labels"][STACK_LABEL],
        pool=group["template"]["spec"]["nodeSelector"][POOL_LABEL],
        state=condition.state,
        ready=condition.ready,
        workers_ready=condition.workers_ready,
        workers_desired=condition.workers_desired,
        gpus=gpus_of(cluster),
        reasons=[] if condition.ready else reasons_of(api, (metadata["namespace"], metadata["name"])),
    )


def table(fleet: Fleet) -> Group:
    """The fleet for people."""
    pools = Table(
        "pool",
        "machine type",
        "nodes",
        "GPUs in use",
        "shared by",
        box=box.SIMPLE_HEAD,
        title="pools",
        title_justify="left",
    )
    for pool in fleet.pools:
        gpus = f"{pool.gpus_in_use}/{pool.gpus}" if pool.gpus else "–"
        wanted = max(pool.nodes, pool.nodes_at_least)
        nodes = str(pool.nodes) if pool.nodes_ready == wanted else f"{pool.nodes_ready}/{wanted} ready"
        pools.add_row(pool.name, pool.machine_type, nodes, gpus, pool.sharing or "–")
    parts: list[Table | Text] = [pools]
    for title, first, rays in (("berths", "engineer", fleet.berths), ("clusters", "cluster", fleet.clusters)):
        if rays:
            parts.append(_rays(title, first, rays))
    parts += [Text(_lacks(pool), style="yellow") for pool in fleet.pools if pool.nodes < pool.nodes_at_least]
    waiting = [ray for ray in (*fleet.berths, *fleet.clusters) if not ray.ready]
    parts += [Text(f"{ray.name} is not ready: {'; '.join(ray.reasons)}", style="yellow") for ray in waiting]
    return Group(*parts)


def _lacks(pool: Pool) -> str:
    """What is said of a pool that has fewer nodes than it always should: nothing in the cluster tells why."""
    return (
        f"{pool.name} has {pool.nodes} of its {pool.nodes_at_least} nodes: GKE is making them, or cannot get machines for "
        f"them and tries on (gcloud container node-pools describe {pool.name} shows why)"
    )


def _rays(title: str, first: str, rays: Iterable[Ray]) -> Table:
    grid = Table(
        first,
        "namespace",
        "RayCluster",
        "workers ready",
        "GPUs",
        "pool",
        "stack",
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
    )
    for ray in rays:
        style = "green" if ray.ready else "yellow"
        state = Text(ray.state, style=style)
        grid.add_row(
            ray.name,
            ray.namespace,
            state,
            f"{ray.workers_ready}/{ray.workers_desired}",
            str(ray.gpus),
            ray.pool,
            ray.stack,
        )
    return grid


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(key): _camel(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_camel(inner) for inner in value]
    return value


def print_fleet(stack: str) -> None:
    """Print an environment's fleet after it was brought up, and what to do next.

    Raises:
        StatusError: it can't be asked.
    """
    out.print(table(fleet_of(stack)))
    out.print("Next:")
    for command, meaning in (
        ('eval "$(.venv/bin/berth lab env)"', "use the lab with plain pulumi, kubectl and helm"),
        ("pulumi up -s alice", "a berth of an engineer's own stack"),
        (f"berth status -s {stack}", "this table"),
        ("make lab-down", "end it; make lab-clean forgets it"),
    ):
        out.print(f"  [bold]{command:<36}[/] {meaning}")
