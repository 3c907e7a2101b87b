"""Long-running local processes as data: start in the order of their needs, stop in the reverse, never touch others'.

A process belongs to a lab when its record (pid and start time) matches the running process, or when it carries the
lab's mark in its environment; the mark finds what was started but never recorded, and children that outlived their
parent.
"""

from __future__ import annotations

import contextlib
import graphlib
import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import psutil

from berth.lab.errors import LabError
from berth.lab.probes import Listener, listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.probes import Probe

MARK = "BERTH_LAB_PROCESS"
"""Environment variable of every process of a lab: `<lab's folder>:<process name>`."""

START_TIME_TOLERANCE = 2.0
"""Seconds by which the same process's start time may differ between two readings (the clock may be corrected)."""

READY_SECONDS = 180.0
HEALTHY_SECONDS = 5.0
STOP_SECONDS = 15.0
HUNG_SECONDS = 3.0
INTERVAL = 0.05
LOG_LINES = 12
LOG_BYTES = 8 << 20


@dataclass(frozen=True)
class Process:
    """One process that the lab runs.

    Attributes:
        name: unique in the lab; names its record and its log.
        argv: program and arguments.
        purpose: what it is, for people.
        needs: processes that must be ready before it starts.
        ports: loopback ports that it listens on.
        environment: variables on top of ours.
        probe: how to see that it works; without one, running is enough.
        version: tells one version of its program from another: one that runs an older version is started again.
    """

    name: str
    argv: tuple[str, ...]
    purpose: str
    needs: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    version: str = ""


@dataclass(frozen=True)
class Record:
    """What is remembered about a process that was started.

    Attributes:
        name: the process's name.
        pid: its process id.
        started: when it started, in seconds since the epoch, as the kernel tells.
        needs: what it needed, for stopping in reverse.
        version: of its program when it was started.
    """

    name: str
    pid: int
    started: float
    needs: list[str]
    version: str = ""


def start_order(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of names: each group needs only earlier ones. Needs that aren't among the names are left out.

    Raises:
        graphlib.CycleError: two of them need each other.
    """
    sorter = graphlib.TopologicalSorter(
        {name: [need for need in its_needs if need in needs] for name, its_needs in needs.items()}
    )
    sorter.prepare()
    groups = []
    while sorter.is_active():
        group = sorted(sorter.get_ready())
        groups.append(group)
        sorter.done(*group)
    return groups


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    return False


def _with_lab(holder: Listener) -> str:
    """The listener, and the lab it belongs to if it is one's."""
    with contextlib.suppress(psutil.Error, OSError):
        mark = psutil.Process(holder.pid).environ().get(MARK, "") if holder.pid is not None else ""
        if mark:
            return f"{holder.name} (pid {holder.pid}) of the lab in {mark.rsplit(':', 1)[0]}"
    return str(holder)


class Supervisor:
    """Starts and stops the processes of one lab.

    Attributes:
        home: the lab.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._root = str(home.root.resolve())
        self._children: list[subprocess.Popen[bytes]] = []  # kept so that they are waited for, not left as zombies

    def log(self, name: str) -> Path:
        """Where a process writes what it has to say."""
        return self.home.logs / f"{name}.log"

    def last_lines(self, name: str) -> str:
        """The end of a process's log, indented for an error's text."""
        try:
            lines = self.log(name).read_text(errors="replace").splitlines()[-LOG_LINES:]
        except OSError:
            lines = []
        return "\n".join(f"    {line[:300]}" for line in lines) or "    (its log is empty)"

    def records(self) -> dict[str, Record]:
        """What was recorded, whether it still runs or not; unreadable records count as none."""
        records = {}
        for path in sorted(self.home.run.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError):
                record = Record(**json.loads(path.read_text()))
                records[record.name] = record
        return records

    def running(self, name: str) -> psutil.Process | None:
        """The process of that name, if it is the one we started and still runs."""
        record = self.records().get(name)
        return self._process(record) if record is not None else None

    def _process(self, record: Record) -> psutil.Process | None:
        try:
            process = psutil.Process(record.pid)
            same = abs(process.create_time() - record.started) < START_TIME_TOLERANCE
        except psutil.Error:
            return None
        return process if same and _alive(process) else None

    def _marked(self) -> list[psutil.Process]:
        """Every running process that carries this lab's mark, except the one that asks and its ancestors."""
        own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
        marked = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                carries = process.environ().get(MARK, "").startswith(f"{self._root}:")
                if carries and process.pid not in own and _alive(process):
                    marked.append(process)
        return marked

    def strays(self) -> list[psutil.Process]:
        """Processes of this lab that no record tells of, nor are they a recorded process's children."""
        known = {process.pid for record in self.records().values() if (process := self._process(record)) is not None}
        strays = []
        for process in self._marked():
            with contextlib.suppress(psutil.Error):
                if process.pid not in known and not any(parent.pid in known for parent in process.parents()):
                    strays.append(process)
        return strays

    def end_strays(self, grace: float = STOP_SECONDS) -> int:
        """End them, the youngest first, since those were started that need the older ones; how many there were."""
        started = {process: process.create_time() for process in self.strays()}
        for process in sorted(started, key=lambda process: started[process], reverse=True):
            self._end([process], grace)
        return len(started)

    def problem(self, process: Process, patience: float = HEALTHY_SECONDS) -> str | None:
        """Why a process has to be started (again), or None if it runs and works.

        Args:
            process: which one.
            patience: seconds that a running one has to answer its probe.
        """
        if self.running(process.name) is None:
            return "not running"
        if self.records()[process.name].version != process.version:
            return "its program is another one by now"
        if process.probe is None:
            return None
        deadline = time.monotonic() + patience
        while (problem := process.probe.answer()) is not None:
            if time.monotonic() > deadline:
                return problem
            if self.running(process.name) is None:
                return "it ended"
            time.sleep(INTERVAL)
        return None

    def start(self, processes: Sequence[Process]) -> list[str]:
        """Bring all of them to work, in the order of their needs; what works already is left alone.

        Returns:
            The names of those that were started.

        Raises:
            LabError: a port is taken, or a process ends or isn't ready within its deadline; the text quotes its log.
        """
        by_name = {process.name: process for process in processes}
        started = []
        for group in start_order({process.name: process.needs for process in processes}):
            launched = []
            for name in group:
                process = by_name[name]
                if self.problem(process) is None:
                    continue
                self.stop([name], grace=HUNG_SECONDS)
                self._launch(process)
                launched.append(process)
            for process in launched:
                self._wait_ready(process)
            started += [process.name for process in launched]
        return started

    def _launch(self, process: Process) -> None:
        for port in process.ports:
            who = listener(port)
            if who is not None:
                raise LabError(
                    f"port {port} is taken by {_with_lab(who)}, and the lab's {process.name} is set up to listen there",
                    "end that program, or run `make lab-clean` for a new lab on other ports",
                )
        self.home.logs.mkdir(parents=True, exist_ok=True)
        self.home.run.mkdir(parents=True, exist_ok=True)
        log = self.log(process.name)
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        environment = os.environ | dict(process.environment) | {MARK: f"{self._root}:{process.name}"}
        with log.open("ab") as output:
            child = subprocess.Popen(
                process.argv,
                cwd=self.home.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # outlives this command, and isn't reached by the terminal's Ctrl-C
            )
        self._children.append(child)
        started = psutil.Process(child.pid).create_time()
        record = Record(process.name, child.pid, started, list(process.needs), process.version)
        path = self.home.run / f"{process.name}.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(record)))
        partial.replace(path)

    def _wait_ready(self, process: Process) -> None:
        deadline = time.monotonic() + READY_SECONDS
        problem: str | None = "it has not answered"
        while time.monotonic() < deadline:
            running = self.running(process.name) is not None
            if running and (process.probe is None or (problem := process.probe.answer()) is None):
                return
            if not running:
                raise LabError(
                    f"{process.name} ({process.purpose}) ended right after its start; the last lines of "
                    f"{self.log(process.name)}:\n{self.last_lines(process.name)}",
                    "mend what they name and run `make lab` again; `make lab-clean` makes a new lab",
                )
            time.sleep(INTERVAL)
        raise LabError(
            f"{process.name} ({process.purpose}) is not ready after {READY_SECONDS:.0f} s: {problem}; the last lines "
            f"of {self.log(process.name)}:\n{self.last_lines(process.name)}",
            "run `make lab` again; `make lab-clean` makes a new lab",
        )

    def stop(self, names: Iterable[str], grace: float = STOP_SECONDS) -> list[str]:
        """End these processes, those that need others first; what doesn't run is left alone.

        Args:
            names: which ones.
            grace: seconds that each has to end by itself.

        Returns:
            The names of those that ran.
        """
        records = self.records()
        chosen = {name: records[name] for name in names if name in records}
        stopped = []
        for group in reversed(start_order({name: record.needs for name, record in chosen.items()})):
            ending = {name: process for name in group if (process := self._process(chosen[name])) is not None}
            self._end(ending.values(), grace)
            stopped += list(ending)
            for name in group:
                (self.home.run / f"{name}.json").unlink(missing_ok=True)
        return stopped

    def stop_all(self, grace: float = STOP_SECONDS) -> list[str]:
        """End every process of this lab, recorded or not.

        Args:
            grace: seconds that each has to end by itself.

        Returns:
            The names of those that ran; `unrecorded` for each that only the mark gave away.
        """
        stopped = self.stop(self.records(), grace)
        strays = self.end_strays(grace)
        for path in self.home.run.glob("*.json"):  # unreadable records
            path.unlink()
        return stopped + ["unrecorded"] * strays

    def _end(self, processes: Iterable[psutil.Process], grace: float = STOP_SECONDS) -> None:
        ending = list(processes)
        for process in ending:
            with contextlib.suppress(psutil.Error):
                process.terminate()
        deadline = time.monotonic() + grace
        while any(map(_alive, ending)) and time.monotonic() < deadline:
            time.sleep(INTERVAL)
        for process in ending:
            if _alive(process):
                with contextlib.suppress(psutil.Error):
                    process.kill()
        deadline = time.monotonic() + STOP_SECONDS
        while any(map(_alive, ending)) and time.monotonic() < deadline:  # until the kernel gets to it
            time.sleep(INTERVAL)
        for child in self._children:
            child.poll()
        self._children = [child for child in self._children if child.returncode is None]
