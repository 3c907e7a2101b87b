"""`berth status`: the fleet of an environment, from its stack's outputs and its API server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic.alias_generators import to_camel
from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from berth.cli import workloads
from berth.cli.console import err, out
from berth.cli.environment import brought_up
from berth.cli.life import Life, age, life_of, moment, sentences
from berth.cli.workloads import Job, Service
from berth.components.cluster.api import NODES, PODS, RAY_CLUSTERS, ClusterApi, ClusterError, Object
from berth.components.cluster.devices import NETWORK_PODS
from berth.components.cluster.gpus import claimed_gpus_of, gpus_in, gpus_of_pod
from berth.components.cluster.inventory import NOTHING, Inventory, inventory_of
from berth.components.cluster.pods import is_ready
from berth.components.core.errors import BerthError
from berth.components.core.owner import ENVIRONMENT_LABEL, OWNER_LABELS, STACK_LABEL
from berth.components.hardware.names import POOL_LABEL
from berth.components.ray.condition import condition_of, gpus_of
from berth.components.ray.readiness import reasons_of
from berth.components.sharing import Pool as OfferedPool
from berth.components.sharing import offered
from berth.stacks.settings.resolve import EnvironmentContract


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
        nics: RDMA NICs that the nodes publish for claims.
        nics_in_use: those that claims hold.
        nics_of_machines: RDMA NICs that the nodes' machines have for claims, by the pool's settings.
        sharing: how GPUs are shared, empty where they are not.
    """

    name: str
    machine_type: str
    nodes: int
    nodes_at_least: int
    nodes_ready: int
    gpus: int
    gpus_in_use: int
    nics: int
    nics_in_use: int
    nics_of_machines: int
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
        nics: RDMA NICs that its workers hold.
        reasons: why it is not ready.
        life: its age, when it expires, and why it is suspended.
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
    nics: int
    reasons: list[str]
    life: Life


@dataclass(frozen=True)
class Fleet:
    """All that is there of one environment."""

    stack: str
    environment: str
    pools: list[Pool]
    berths: list[Ray]
    clusters: list[Ray]
    jobs: list[Job] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def all(self) -> list[Ray | Job | Service]:
        """All that can be ready."""
        return [*self.berths, *self.clusters, *self.jobs, *self.services]

    @property
    def ready(self) -> bool:
        """Every RayCluster and RayService is ready, and every RayJob runs or has ended well."""
        return all(each.ready for each in self.all)

    def of_stack(self, stack: str) -> Fleet:
        """The pools, and what an engineer's stack made."""
        return replace(
            self, berths=[berth for berth in self.berths if berth.stack == stack], clusters=[], jobs=[], services=[]
        )

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
        raise BerthError(f"stack {up.stack}: {error}") from None
    if up.stack == stack:
        return fleet
    return fleet.of_stack(stack)


def observe(api: ClusterApi, stack: str, contract: EnvironmentContract) -> Fleet:
    """The fleet as the API server has it.

    Raises:
        ClusterError: it can't be asked.
    """
    nodes, _ = api.list(NODES)
    pods, _ = api.list(PODS, fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    found, _ = api.list(RAY_CLUSTERS, labelSelector=f"{ENVIRONMENT_LABEL}={contract.name}")
    pools = offered(contract.pools, contract.sharing).values()
    seen = _devices(api, pools)
    rays = {
        kind: [_ray(api, each, label, seen) for each in found if label in each["metadata"]["labels"]]
        for kind, label in OWNER_LABELS.items()
        if kind in ("engineer", "cluster")
    }
    return Fleet(
        stack=stack,
        environment=contract.name,
        pools=[_pool(pool, nodes, pods, seen) for pool in pools],
        berths=rays["engineer"],
        clusters=rays["cluster"],
        jobs=workloads.jobs(api, contract.name),
        services=workloads.services(api, contract.name),
    )


def _devices(api: ClusterApi, pools: Iterable[OfferedPool]) -> Inventory | None:
    """What nodes publish for claims, asked only where a pool has such nodes; None where this user may not see it."""
    if not any(pool.settings.nics or pool.settings.by_dra for pool in pools):
        return NOTHING
    try:
        return inventory_of(api)
    except ClusterError as error:
        err.print(f"[yellow]NICs and claimed GPUs are not shown: {escape(str(error))}[/]")
        return None


def _pool(pool: OfferedPool, nodes: Iterable[Object], pods: Iterable[Object], seen: Inventory | None) -> Pool:
    mine = [node for node in nodes if (node["metadata"].get("labels") or {}).get(POOL_LABEL) == pool.name]
    names = {node["metadata"]["name"] for node in mine}
    holders = seen.holders if seen else {}
    devices = [device for device in (seen.devices if seen else ()) if device.node in names]
    held = [device for device in devices if device.key in holders]
    counted = [gpus_of_pod(pod) - claimed_gpus_of(pod) for pod in pods if pod["spec"].get("nodeName") in names]
    return Pool(
        name=pool.name,
        machine_type=pool.settings.machine_type,
        nodes=len(mine),
        nodes_at_least=pool.settings.nodes_at_least,
        nodes_ready=sum(is_ready(node) for node in mine),
        gpus=sum(gpus_in(node["status"].get("allocatable") or {}) for node in mine)
        + sum(device.is_gpu for device in devices),
        gpus_in_use=sum(counted) + sum(device.is_gpu for device in held),
        nics=sum(device.is_nic for device in devices),
        nics_in_use=sum(device.is_nic for device in held),
        nics_of_machines=len(mine) * pool.settings.nics if seen else 0,
        sharing=pool.sharing,
    )


def _ray(api: ClusterApi, cluster: Object, owner_label: str, seen: Inventory | None) -> Ray:
    metadata, condition = cluster["metadata"], condition_of(cluster)
    seen = seen or NOTHING
    nics = {device.key for device in seen.devices if device.is_nic}
    held = [key for claim in seen.claims if claim.namespace == metadata["namespace"] for key in claim.held]
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
        nics=sum(key in nics for key in held),
        reasons=[] if condition.ready else reasons_of(api, (metadata["namespace"], metadata["name"])),
        life=life_of(cluster),
    )


def table(fleet: Fleet) -> Group:
    """The fleet for people."""
    with_nics = any(pool.nics_of_machines for pool in fleet.pools)
    pools = Table(
        "pool",
        "machine type",
        "nodes",
        "GPUs in use",
        *(["NICs in use"] if with_nics else []),
        "shared by",
        box=box.SIMPLE_HEAD,
        title="pools",
        title_justify="left",
    )
    for pool in fleet.pools:
        gpus = f"{pool.gpus_in_use}/{pool.gpus}" if pool.gpus else "–"
        wanted = max(pool.nodes, pool.nodes_at_least)
        nodes = str(pool.nodes) if pool.nodes_ready == wanted else f"{pool.nodes_ready}/{wanted} ready"
        nics = f"{pool.nics_in_use}/{pool.nics}" if pool.nics_of_machines else "–"
        row = [pool.name, pool.machine_type, nodes, gpus, *([nics] if with_nics else []), pool.sharing or "–"]
        pools.add_row(*row)
    parts: list[Table | Text] = [pools]
    for title, first, rays in (("berths", "engineer", fleet.berths), ("clusters", "cluster", fleet.clusters)):
        if rays:
            parts.append(_rays(title, first, rays))
    if fleet.jobs:
        parts.append(workloads.jobs_table(fleet.jobs))
    if fleet.services:
        parts.append(workloads.services_table(fleet.services))
    parts += [Text(_lacks(pool), style="yellow") for pool in fleet.pools if pool.nodes < pool.nodes_at_least]
    parts += [Text(_lacks_nics(pool), style="yellow") for pool in fleet.pools if pool.nics < pool.nics_of_machines]
    told = [said for ray in (*fleet.berths, *fleet.clusters) for said in sentences(ray.name, ray.life)]
    parts += [Text(said, style="cyan") for said in told]
    parts += [
        Text(f"{each.name} {_lacking(each)}: {'; '.join(each.reasons)}", style="yellow")
        for each in fleet.all
        if not each.ready
    ]
    return Group(*parts)


def _lacking(each: Ray | Job | Service) -> str:
    if not isinstance(each, Job):
        return "is not ready"
    return "failed" if each.ended else "does not run"


def _lacks(pool: Pool) -> str:
    """What is said of a pool that has fewer nodes than it always should: nothing in the cluster tells why."""
    return (
        f"{pool.name} has {pool.nodes} of its {pool.nodes_at_least} nodes: GKE is making them, or cannot get machines for "
        f"them and tries on (gcloud container node-pools describe {pool.name} shows why)"
    )


def _lacks_nics(pool: Pool) -> str:
    """What is said of a pool whose nodes publish fewer NICs than they have: claims wait, and nothing else tells why."""
    return (
        f"{pool.name} has {pool.nics_of_machines} NICs, and its nodes publish {pool.nics} of them for claims: DraNet does not"
        " run on each node, or the nodes lack RDMA networks (kubectl get resourceslices; kubectl get pods -A -l"
        f" {NETWORK_PODS} -o wide)"
    )


def _rays(title: str, first: str, rays: Iterable[Ray]) -> Table:
    shown = list(rays)
    with_nics = any(ray.nics for ray in shown)
    expiring = any(ray.life.expires for ray in shown)
    now = datetime.now(tz=UTC)
    grid = Table(
        first,
        "namespace",
        "RayCluster",
        "workers ready",
        "GPUs",
        *(["NICs"] if with_nics else []),
        "pool",
        "stack",
        "age",
        *(["expires"] if expiring else []),
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
    )
    for ray in shown:
        style = "green" if ray.ready else "yellow"
        state = Text(ray.state, style=style)
        grid.add_row(
            ray.name,
            ray.namespace,
            state,
            f"{ray.workers_ready}/{ray.workers_desired}",
            str(ray.gpus),
            *([str(ray.nics)] if with_nics else []),
            ray.pool,
            ray.stack,
            age(ray.life.created, now),
            *([moment(ray.life.expires, ray.life.zone) if ray.life.expires else "–"] if expiring else []),
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
