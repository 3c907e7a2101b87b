"""What runs in a lab, for people and programs."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from berth.lab import controlplane, lifecycle
from berth.lab.plugins.gcp.store import Store
from berth.lab.processes import Supervisor

if TYPE_CHECKING:
    from berth.lab.home import Home
    from berth.lab.kubernetes_plugin import Plugin

MIB = 1 << 20


@dataclass(frozen=True)
class State:
    """One process of a lab.

    Attributes:
        name: its name.
        purpose: what it is.
        problem: why it has to be started again, or None.
        pid: its process id while it runs.
        memory: resident bytes, of its children too.
        ports: loopback ports.
        log: its log file.
    """

    name: str
    purpose: str
    problem: str | None
    pid: int | None
    memory: int
    ports: tuple[int, ...]
    log: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def states(home: Home) -> list[State]:
    """Every process of a lab, in the order in which they start; empty where there is no lab."""
    plane = controlplane.load(home)
    if plane is None:
        return []
    supervisor = Supervisor(home)
    found = []
    wanted = lifecycle.processes(home, plane)
    if lifecycle.had_real_node(home):
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - few labs ever have one

        wanted += realnode.all_processes(home, plane)
    for process in wanted:
        running = supervisor.running(process.name)
        memory = 0
        if running is not None:
            for member in [running, *running.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    memory += member.memory_info().rss
        found.append(
            State(
                name=process.name,
                purpose=process.purpose,
                problem=supervisor.problem(process, patience=0),
                pid=running.pid if running is not None else None,
                memory=memory,
                ports=process.ports,
                log=str(supervisor.log(process.name)),
            )
        )
    return found


def resources(home: Home) -> dict[str, int]:
    """How many resources each simulated project has; none are left once everything is destroyed."""
    return dict(Counter(record.project for record in Store(home.cloud).all()))


def show(found: list[State], cloud: dict[str, int], plugin: Plugin) -> None:
    """Print processes as a table, the kubernetes plugin, and what there is in the simulated cloud, to stdout."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("process", "what", "state", "pid", "MiB", "ports"):
        table.add_column(heading, justify="right" if heading in {"pid", "MiB"} else "left")
    for state in found:
        table.add_row(
            state.name,
            state.purpose,
            f"[red]{state.problem}[/red]" if state.problem else "[green]works[/green]",
            str(state.pid or ""),
            str(state.memory // MIB),
            ", ".join(map(str, state.ports)),
        )
    total = sum(state.memory for state in found) // MIB
    console = Console()
    console.print(table)
    console.print(f"{total} MiB resident in all")
    console.print(f"Pulumi's kubernetes plugin: {plugin}", markup=False, highlight=False, soft_wrap=True)
    projects = ", ".join(f"{count} in project {project}" for project, count in cloud.items())
    console.print(f"simulated cloud: {sum(cloud.values())} resources{f' ({projects})' if projects else ''}")
