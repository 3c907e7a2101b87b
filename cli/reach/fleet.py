"""`berth status`: the fleet of an environment as tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Group
from rich.text import Text

from berth.cli.reach.environment import (
    LiveEnvironment,
    NotUpError,
    brought_up,
    namespaces_not_in_state,
    not_in_state_note,
)
from berth.cli.reach.lifecycle import REMARKS, age, moment, sentences
from berth.cli.shell.console import Table, err
from berth.components.cluster.api import ClusterApi, ClusterError, Reader, UnreachableError
from berth.components.cluster.devices import NETWORK_PODS
from berth.components.cluster.mirror import Snapshot
from berth.components.core.errors import BerthError
from berth.components.core.owner import OwnerKind
from berth.components.core.words import plural
from berth.components.ray.fleet import (
    WHOLE_GPU,
    Fleet,
    LiveJob,
    LivePool,
    LiveRayCluster,
    LiveService,
    MissingOwner,
)
from berth.components.ray.fleet_observation import observed_fleet
from berth.components.sharing import offered_pools

NOTHING = "–"

_SELDOM = {"NICs in use", "NICs", "expires"}
"""Columns that a terminal shows only where a row has a value."""
_COLORS = {"good": "green", "warn": "yellow"}


def fleet_of(stack: str) -> Fleet:
    """Return the fleet of an environment; of an engineer's stack the pools and that berth."""
    up = brought_up(stack)
    fleet = fleet_on(up, stack)
    require_up(fleet, stack, up)
    return fleet


def fleet_on(up: LiveEnvironment, stack: str) -> Fleet:
    """Return the fleet of a stack on an environment that is up."""
    try:
        return observed(Snapshot(ClusterApi(up.kubeconfig)), stack, up)
    except ClusterError as error:
        known = error.of_stack(up.stack) if isinstance(error, UnreachableError) else error
        raise BerthError(f"stack {up.stack}: {known.problem}", known.remedy) from None


def require_up(fleet: Fleet, stack: str, up: LiveEnvironment) -> None:
    """Refuse an engineer's stack without a berth on its environment."""
    if up.stack != stack and not fleet.berths:
        raise NotUpError(
            f"stack {stack} is not up on environment {up.stack}; run: pulumi up -s {stack}"
        )


def observed(reader: Reader, stack: str, up: LiveEnvironment) -> Fleet:
    """Return the fleet of a stack on an environment that is up."""
    pools = offered_pools(up.contract.pools, up.contract.sharing).values()
    fleet = observed_fleet(
        reader, stack, up.contract.name, pools, lambda text: err.print(text, style="yellow")
    )
    if up.stack != stack:
        return fleet.of_stack(stack)
    unknown = namespaces_not_in_state(up, reader)
    return replace(fleet, not_in_state=unknown, missing=_missing(fleet, up.outputs))


def _missing(fleet: Fleet, outputs: Mapping[str, Any]) -> list[MissingOwner]:
    """Return the owners that an environment's last update registered and the cluster lacks."""
    kinds: tuple[tuple[OwnerKind, str, Iterable[LiveRayCluster | LiveJob | LiveService]], ...] = (
        ("engineer", "berths", fleet.berths),
        ("cluster", "clusters", fleet.clusters),
        ("job", "jobs", fleet.jobs),
        ("service", "services", fleet.services),
    )
    return [
        MissingOwner(kind, name)
        for kind, output, workloads in kinds
        for name in str(outputs.get(output, "")).split(", ")
        if name and name not in {workload.name for workload in workloads}
    ]


@dataclass(frozen=True)
class Grid:
    """Table of a fleet, for a terminal or a page."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | tuple[str, str]]]
    """Cells, as text or as a text with the class `good` or `warn`."""

    def on_terminal(self) -> Table:
        """Return the table for a terminal."""
        shown = [
            number
            for number, head in enumerate(self.heads)
            if head not in _SELDOM or any(row[number] != NOTHING for row in self.rows)
        ]
        table = Table(*(self.heads[number] for number in shown), title=self.title)
        for row in self.rows:
            cells = [row[number] for number in shown]
            table.add_row(
                *(
                    cell if isinstance(cell, str) else Text(cell[0], _COLORS[cell[1]])
                    for cell in cells
                )
            )
        return table


def table(fleet: Fleet) -> Group:
    """Return the fleet for people."""
    parts: list[Table | Text] = []
    for grid in grids(fleet, datetime.now(tz=UTC)):
        parts += [Text(), grid.on_terminal()] if parts else [grid.on_terminal()]
    parts += [Text(note, style="yellow") for note in notes_on(fleet)]
    lives = [(ray.name, ray.life) for ray in (*fleet.berths, *fleet.clusters)]
    parts += [
        Text(sentence, style="cyan") for name, life in lives for sentence in sentences(name, life)
    ]
    return Group(*parts, *(Text(reason, style="yellow") for reason in reasons_on(fleet)))


def grids(fleet: Fleet, now: datetime) -> list[Grid]:
    """Return the tables of a fleet at a moment: pools, and each kind of workload that there is."""
    found = [
        _pools(fleet.pools),
        _rays(fleet, "berths", "engineer", fleet.berths, now),
        _rays(fleet, "clusters", "cluster", fleet.clusters, now),
        _jobs(fleet.jobs, now),
        _services(fleet, now),
    ]
    return [grid for grid in found if grid.rows or grid.title == "pools"]


def _state(workload: LiveRayCluster | LiveJob | LiveService) -> tuple[str, str]:
    return workload.state, "good" if workload.ready else "warn"


def reasons_on(fleet: Fleet) -> Iterable[str]:
    """Yield why workloads are not ready: `bob is not ready: …`."""
    for workload in fleet.workloads:
        state = "is not ready"
        if isinstance(workload, LiveJob):
            state = "failed" if workload.ended else "does not run"
        if not workload.ready:
            yield f"{workload.name} {state}: {'; '.join(workload.reasons)}"


def notes_on(fleet: Fleet) -> Iterable[str]:
    """Yield notes on namespaces that no state knows, and on missing berths, nodes and NICs."""
    if fleet.not_in_state:
        yield ": ".join(not_in_state_note(fleet.not_in_state, fleet.stack))
    for missing in fleet.missing:
        yield REMARKS["missing"].format(missing=missing, stack=fleet.stack)
    for pool in fleet.pools:
        if pool.nodes < pool.nodes_at_least:
            yield REMARKS["nodes"].format(pool=pool)
        if pool.nics < pool.nics_of_machines:
            yield REMARKS["nics"].format(pool=pool, label=NETWORK_PODS)
    for node in fleet.nodes:
        if node.maintenance_at:
            yield REMARKS["maintenance"].format(node=node)


def _pools(pools: Iterable[LivePool]) -> Grid:
    heads = ("pool", "machine type", "nodes", "GPUs in use", "NICs in use", "shared by")
    rows = [
        (
            pool.name,
            pool.machine_type,
            _nodes(pool),
            _in_use(pool) if pool.gpus else NOTHING,
            f"{pool.nics_in_use}/{pool.nics}" if pool.nics_of_machines else NOTHING,
            pool.sharing or NOTHING,
        )
        for pool in pools
    ]
    return Grid("pools", heads, rows)


def _in_use(pool: LivePool) -> str:
    """Return the use of a pool's GPUs: `3/8`, or `3/32 shares` where pods share them."""
    count = f"{pool.gpus_in_use}/{pool.gpus}"
    return count if pool.unit == WHOLE_GPU else f"{count} {plural(pool.unit)}"


def _nodes(pool: LivePool) -> str | tuple[str, str]:
    desired = max(pool.nodes, pool.nodes_at_least)
    return (
        str(pool.nodes)
        if pool.nodes_ready == desired
        else (f"{pool.nodes_ready}/{desired} ready", "warn")
    )


def _rays(
    fleet: Fleet, title: str, first: str, rays: Iterable[LiveRayCluster], now: datetime
) -> Grid:
    heads = (
        "namespace",
        "RayCluster",
        "workers ready",
        "GPUs",
        "NICs",
        "pool",
        "stack",
        "age",
        "expires",
    )
    rows = [
        (
            ray.name,
            ray.namespace,
            _state(ray),
            _workers(ray),
            fleet.requested(ray),
            str(ray.nics) if ray.nics else NOTHING,
            ray.pool,
            ray.stack,
            age(ray.life.created, now),
            moment(ray.life.expires, ray.life.zone) if ray.life.expires else NOTHING,
        )
        for ray in rays
    ]
    return Grid(title, (first, *heads), rows)


def _workers(ray: LiveRayCluster) -> str:
    """Return the ready workers: `1/2`, or `cpu 1/1, gpu 0/2` for several groups."""
    if len(ray.groups) == 1:
        return f"{ray.workers_ready}/{ray.workers_desired}"
    return ", ".join(
        f"{group.name} {group.workers_ready}/{group.workers_desired}" for group in ray.groups
    )


def _jobs(jobs: Iterable[LiveJob], now: datetime) -> Grid:
    heads = ("job", "namespace", "RayJob", "state", "on RayCluster", "stack", "age", "ended")
    rows = [
        (
            job.name,
            job.namespace,
            job.ray_job,
            _state(job),
            job.ray_cluster or NOTHING,
            job.stack,
            age(job.created, now),
            f"{age(job.ended, now)} ago" if job.ended else NOTHING,
        )
        for job in jobs
    ]
    return Grid("jobs", heads, rows)


def _services(fleet: Fleet, now: datetime) -> Grid:
    heads = (
        "service",
        "state",
        "applications",
        "workers ready",
        "GPUs",
        "pool",
        "stack",
        "age",
        "address",
    )
    rows = [
        (
            service.name,
            _state(service),
            f"{service.applications_running}/{service.applications}",
            f"{service.workers_ready}/{service.workers_desired}",
            fleet.counted(service.gpus, service.pool),
            service.pool,
            service.stack,
            age(service.created, now),
            service.address,
        )
        for service in fleet.services
    ]
    return Grid("services", heads, rows)
