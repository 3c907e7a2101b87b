"""State of a lab's processes and of its simulated cloud, for people and programs."""

import contextlib
from collections import Counter
from dataclasses import dataclass

import psutil

from berth.lab import controlplane, lifecycle
from berth.lab.home import LabHome
from berth.lab.plugins.gcp.store import Store
from berth.lab.processes import Supervisor


@dataclass(frozen=True)
class State:
    """State of one process of a lab."""

    name: str
    purpose: str
    problem: str | None
    """Why the process has to be started again, or None."""
    pid: int | None
    memory: int
    """Resident bytes, those of child processes included."""
    ports: tuple[int, ...]
    log: str


def states(home: LabHome) -> list[State]:
    """Return the states of a lab's processes in their start order; empty without a lab."""
    plane = controlplane.load(home)
    if plane is None:
        return []
    supervisor = Supervisor(home)
    processes = lifecycle.processes(home, plane)
    if lifecycle.had_real_node(home):
        from berth.lab.realnode import lifecycle as realnode  # noqa: PLC0415 - few labs ever have one

        processes += realnode.all_processes(home, plane)
    found = []
    for process in processes:
        running = supervisor.running(process.name)
        found.append(
            State(
                name=process.name,
                purpose=process.purpose,
                problem=supervisor.problem(process, patience=0),
                pid=running.pid if running else None,
                memory=_memory(running) if running else 0,
                ports=process.ports,
                log=str(supervisor.log(process.name)),
            )
        )
    return found


def _memory(process: psutil.Process) -> int:
    total = 0
    for member in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += member.memory_info().rss
    return total


def resources(home: LabHome) -> dict[str, int]:
    """Return the number of resources of each simulated project that has any."""
    return dict(Counter(record.project for record in Store(home.cloud).list()))
