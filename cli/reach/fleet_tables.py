"""Tables of a fleet, for a terminal or a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group
from rich.text import Text

from berth.cli.reach.fleet_remarks import lifecycles_on, notes_on, reasons_on, restarts_on
from berth.cli.reach.moments import age_in_words, moment_in_zone
from berth.cli.shell.table import NOTHING, Table
from berth.components.ray.live import (
    Fleet,
    LiveJob,
    LivePool,
    LiveRayCluster,
    LiveService,
)

_COLORS = {"good": "green", "warn": "yellow"}

Cell = str | tuple[str, str]
"""Cell as text, or as a text with the class `good` or `warn`."""


@dataclass(frozen=True)
class Grid:
    """Table of a fleet, for a terminal or a page."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    hide_first: Sequence[str] = ()
    """Heads of the columns that a narrow terminal leaves out, in this order."""

    def on_terminal(self) -> Table:
        """Return the table for a terminal."""
        table = Table(*self.heads, title=self.title, hide_first=self.hide_first)
        for row in self.rows:
            table.add_row(*map(_styled, row))
        return table


def _styled(cell: Cell) -> str | Text:
    if isinstance(cell, str):
        return cell
    text, style = cell
    return Text(text, _COLORS[style])


def fleet_tables(fleet: Fleet) -> Group:
    """Return a fleet for people: its tables, with remarks below them."""
    parts: list[Table | Text] = []
    now = datetime.now(tz=UTC)
    for grid in fleet_grids(fleet, now):
        if parts:
            parts.append(Text())
        parts.append(grid.on_terminal())
    parts += [Text(note, style="yellow") for note in notes_on(fleet)]
    parts += [Text(remark, style="cyan") for remark in lifecycles_on(fleet)]
    parts += [Text(reason, style="yellow") for reason in reasons_on(fleet)]
    parts += [Text(restart, style="yellow") for restart in restarts_on(fleet, now)]
    return Group(*parts)


def fleet_grids(fleet: Fleet, now: datetime) -> list[Grid]:
    """Return the tables of a fleet at a moment: pools, and each kind of workload that there is."""
    workloads = [
        _rays(fleet, "berths", "engineer", fleet.berths, now),
        _rays(fleet, "clusters", "cluster", fleet.clusters, now),
        _jobs(fleet.jobs, now),
        _services(fleet, now),
    ]
    return [_pools(fleet.pools), *(grid for grid in workloads if grid.rows)]


def _state(workload: LiveRayCluster | LiveJob | LiveService) -> tuple[str, str]:
    return workload.state, "good" if workload.ready else "warn"


def _pools(pools: Iterable[LivePool]) -> Grid:
    heads = ("pool", "machine type", "nodes", "GPUs in use", "NICs in use", "shared by")
    rows = [
        (
            pool.name,
            pool.machine_type,
            _nodes(pool),
            pool.gpu_unit.brief(pool.gpus_in_use, pool.gpus) if pool.gpus else NOTHING,
            f"{pool.nics_in_use}/{pool.nics}" if pool.nics_of_machines else NOTHING,
            pool.sharing or NOTHING,
        )
        for pool in pools
    ]
    return Grid("pools", heads, rows, ("shared by", "machine type", "NICs in use"))


def _nodes(pool: LivePool) -> Cell:
    desired = max(pool.nodes, pool.nodes_at_least)
    if pool.nodes_ready == desired:
        return str(pool.nodes)
    return f"{pool.nodes_ready}/{desired} ready", "warn"


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
            age_in_words(ray.life.created, now),
            moment_in_zone(ray.life.expires, ray.life.zone) if ray.life.expires else NOTHING,
        )
        for ray in rays
    ]
    hide_first = ("namespace", "age", "stack", "NICs", "pool", "GPUs")
    return Grid(title, (first, *heads), rows, hide_first)


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
            age_in_words(job.created, now),
            f"{age_in_words(job.ended, now)} ago" if job.ended else NOTHING,
        )
        for job in jobs
    ]
    hide_first = ("namespace", "age", "stack", "on RayCluster")
    return Grid("jobs", heads, rows, hide_first)


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
            age_in_words(service.created, now),
            service.address,
        )
        for service in fleet.services
    ]
    hide_first = ("age", "stack", "pool", "GPUs", "applications")
    return Grid("services", heads, rows, hide_first)
