"""Local processes as data: started in the order of their needs, stopped in reverse.

A process belongs to a lab if its record (pid and start time) matches the running process, or if its
environment has the lab's mark. The mark finds processes that were started but never recorded, and
children that outlived their parent.
"""

from __future__ import annotations

import contextlib
import graphlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import psutil

from berth.components.core import whole_file
from berth.lab.errors import LabError, quoted
from berth.lab.home import LabHome
from berth.lab.probes import Probe, listener

MARK = "BERTH_LAB_PROCESS"
"""Environment variable of every process of a lab: `<lab's folder>:<process name>`."""

START_TIME_TOLERANCE = 2.0
"""Seconds by which two readings of one process's start time may differ (the clock may be
corrected)."""

READY_SECONDS = 180.0
HEALTHY_SECONDS = 5.0
STOP_SECONDS = 15.0
HUNG_SECONDS = 3.0
INTERVAL = 0.05
LOG_LINES = 12
LOG_BYTES = 8 << 20


@dataclass(frozen=True)
class LabProcess:
    """Process that the lab runs."""

    name: str
    """Name, unique in the lab, of the process, its record and its log."""
    argv: tuple[str, ...]
    purpose: str
    """Short description for people."""
    needs: tuple[str, ...] = ()
    """Processes that must be ready before this one starts."""
    ports: tuple[int, ...] = ()
    """Loopback ports that the process listens on."""
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    """Health check; without one, a running process counts as healthy."""
    version: str = ""
    """Version of the program; a process of another version is started again."""

    @classmethod
    def of_row(cls, name: str, row: Mapping[str, Any], values: Mapping[str, Any]) -> LabProcess:
        """Return a process as a row of a table has it, with values in the place of `${NAME}`."""
        probe = row.get("probe")
        return cls(
            name=name,
            argv=tuple(Template(word).substitute(values) for word in row.get("command", ())),
            purpose=row["purpose"],
            needs=tuple(row.get("needs", ())),
            ports=tuple(values[port] for port in row.get("ports", ())),
            environment={
                key: Template(text).substitute(values)
                for key, text in row.get("environment", {}).items()
            },
            probe=Probe(Template(probe).substitute(values)) if probe else None,
        )


@dataclass(frozen=True)
class ProcessRecord:
    """Note about a started process: pid, start in seconds since the epoch, needs, version."""

    name: str
    pid: int
    started: float
    needs: list[str]
    version: str = ""

    def process(self) -> psutil.Process | None:
        """Return the recorded process if it still runs."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started) < START_TIME_TOLERANCE and _alive(process):
                return process
        return None


def start_order(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return groups of names, of which each needs only earlier groups; unknown needs are left out.

    Raises:
        graphlib.CycleError: the needs have a cycle.
    """
    graph = {name: needs.keys() & required for name, required in needs.items()}
    sorter = graphlib.TopologicalSorter(graph)
    sorter.prepare()
    groups = []
    while sorter.is_active():
        groups.append(sorted(sorter.get_ready()))
        sorter.done(*groups[-1])
    return groups


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() not in {
            psutil.STATUS_ZOMBIE,
            psutil.STATUS_DEAD,
        }
    return False


def _mark(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ().get(MARK, "")
    return ""


def _holder(pid: int) -> str:
    """Description of a process that holds a port, with its lab if it belongs to one."""
    if pid == 0:
        return "another user's process"
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        lab = _mark(process).rpartition(":")[0]
        return f"{process.name()} (pid {pid}){f' of the lab in {lab}' if lab else ''}"
    return f"a process (pid {pid})"


class Supervisor:
    """Starts and stops the processes of one lab."""

    def __init__(self, home: LabHome) -> None:
        self.home = home
        self._root = str(home.root.resolve())
        self._children: list[subprocess.Popen[bytes]] = []  # polled, so that none is left a zombie

    def mark(self, name: str) -> str:
        """Return the value of `MARK` for a process, and for all that it starts."""
        return f"{self._root}:{name}"

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.home.logs / f"{name}.log"

    def _record_file(self, name: str) -> Path:
        return self.home.run / f"{name}.json"

    def records(self) -> dict[str, ProcessRecord]:
        """Return all records, of running processes and others; unreadable ones are left out."""
        records = {}
        for path in sorted(self.home.run.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                record = ProcessRecord(**json.loads(path.read_text()))
                records[record.name] = record
        return records

    def running(self, name: str) -> psutil.Process | None:
        """Return the process of that name, if this lab started it and it still runs."""
        record = self.records().get(name)
        return record.process() if record else None

    def strays(self) -> list[psutil.Process]:
        """Return marked processes without a record, of the lab or of a parent; never the caller."""
        processes = [record.process() for record in self.records().values()]
        recorded = {process.pid for process in processes if process}
        own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        strays = []
        for process in psutil.process_iter():
            if (
                process.pid in recorded | own
                or not _mark(process).startswith(f"{self._root}:")
                or not _alive(process)
            ):
                continue
            with contextlib.suppress(psutil.Error):
                if not any(parent.pid in recorded for parent in process.parents()):
                    strays.append(process)
        return strays

    def end_strays(self, grace: float = STOP_SECONDS) -> int:
        """End strays, the youngest first, since it needs the older ones; return their number."""
        started = {process: process.create_time() for process in self.strays()}
        for process in sorted(started, key=lambda process: started[process], reverse=True):
            self._end([process], grace)
        return len(started)

    def problem(self, process: LabProcess, patience: float = HEALTHY_SECONDS) -> str | None:
        """Return why a process has to be started (again), or None if it works.

        A running process has `patience` seconds to answer its probe.
        """
        record = self.records().get(process.name)
        if record is None or record.process() is None:
            return "not running"
        if record.version != process.version:
            return "runs an older version of its program"
        deadline = time.monotonic() + patience
        while process.probe and (problem := process.probe.answer()) is not None:
            if time.monotonic() > deadline:
                return problem
            if record.process() is None:
                return "ended"
            time.sleep(INTERVAL)
        return None

    def start(self, processes: Sequence[LabProcess]) -> list[str]:
        """Start the processes that do not work, in the order of their needs; return their names."""
        by_name = {process.name: process for process in processes}
        started = []
        for group in start_order({process.name: process.needs for process in processes}):
            broken = [name for name in group if self.problem(by_name[name]) is not None]
            for name in broken:
                self.stop([name], grace=HUNG_SECONDS)
                self._launch(by_name[name])
            for name in broken:
                self._wait_ready(by_name[name])
            started += broken
        return started

    def _launch(self, process: LabProcess) -> None:
        for port in process.ports:
            if (pid := listener(port)) is not None:
                raise LabError(
                    f"port {port} is taken by {_holder(pid)}, but the lab's {process.name} must"
                    " listen there",
                    "end that program, or run `make lab-clean` for a new lab on other ports",
                )
        self.home.logs.mkdir(parents=True, exist_ok=True)
        self.home.run.mkdir(parents=True, exist_ok=True)
        log = self.log(process.name)
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            child = subprocess.Popen(
                process.argv,
                cwd=self.home.root,
                env=os.environ | dict(process.environment) | {MARK: self.mark(process.name)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # The process outlives this command, and the terminal's Ctrl-C does not reach it.
                start_new_session=True,
            )
        self._children.append(child)
        started = psutil.Process(child.pid).create_time()
        record = ProcessRecord(
            process.name, child.pid, started, list(process.needs), process.version
        )
        whole_file.replace_file(self._record_file(process.name), json.dumps(asdict(record)))

    def _wait_ready(self, process: LabProcess) -> None:
        problem = self.problem(process, READY_SECONDS)
        if problem is None:
            return
        ended = self.running(process.name) is None
        outcome = (
            "ended right after its start"
            if ended
            else f"is not ready after {READY_SECONDS:.0f} s: {problem}"
        )
        log = self.log(process.name)
        raise LabError(
            f"{process.name} ({process.purpose}) {outcome}; the last lines of {log}:\n"
            f"{quoted(log.read_text(errors='replace'), LOG_LINES)}",
            "fix the cause that they name and run `make lab` again; `make lab-clean` makes a"
            " new lab",
        )

    def stop(self, names: Iterable[str], grace: float = STOP_SECONDS) -> list[str]:
        """End processes, those that need others first; return the names of those that ran.

        A process has `grace` seconds to end after SIGTERM; then it is killed.
        """
        records = self.records()
        chosen = {name: records[name] for name in names if name in records}
        stopped = []
        for group in reversed(start_order({name: record.needs for name, record in chosen.items()})):
            processes = {name: chosen[name].process() for name in group}
            ending = {name: process for name, process in processes.items() if process}
            self._end(list(ending.values()), grace)
            stopped += list(ending)
            for name in group:
                self._record_file(name).unlink(missing_ok=True)
        return stopped

    def stop_tree(self, name: str) -> None:
        """End a process with all that it has started, whatever of that still runs."""
        record = self.records().get(name)
        process = record.process() if record else None
        tree = process.children(recursive=True) if process else []
        self.stop([name], grace=HUNG_SECONDS)
        tree += [other for other in psutil.process_iter() if _mark(other) == self.mark(name)]
        self._end(tree, grace=0)

    def stop_all(self, grace: float = STOP_SECONDS) -> list[str]:
        """End every process of this lab; return their names, `unrecorded` for a stray."""
        stopped = []
        while records := self.records():  # a process that ends may have started another one
            stopped += self.stop(records, grace)
        strays = self.end_strays(grace)
        for path in self.home.run.glob("*.json"):  # unreadable records
            path.unlink()
        return stopped + ["unrecorded"] * strays

    def _end(self, processes: Sequence[psutil.Process], grace: float) -> None:
        # psutil.wait_procs would wait for zombies too, which nobody reaps in some containers.
        for signal, patience in (
            (psutil.Process.terminate, grace),
            (psutil.Process.kill, STOP_SECONDS),
        ):
            ending = [process for process in processes if _alive(process)]
            for process in ending:
                with contextlib.suppress(psutil.Error):
                    signal(process)
            deadline = time.monotonic() + patience
            while any(map(_alive, ending)) and time.monotonic() < deadline:
                time.sleep(INTERVAL)
        self._children = [child for child in self._children if child.poll() is None]
