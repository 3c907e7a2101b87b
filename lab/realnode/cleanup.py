"""Removal of everything that a real node left, found by the lab's own tag."""

import contextlib
import subprocess
import time
from pathlib import Path

import psutil

from berth.lab.errors import LabError
from berth.lab.home import LabHome
from berth.lab.realnode.layout import tag
from berth.lab.realnode.processes import NODE_MARK
from berth.lab.realnode.requirements import CGROUPS

_PATIENCE_SECONDS = 15.0
_INTERVAL_SECONDS = 0.05


def _groups(home: LabHome) -> list[Path]:
    """Control groups of the node in every hierarchy, the innermost first."""
    name = tag(home)
    roots = [
        path
        for path in (CGROUPS / name, *CGROUPS.glob(f"*/{name}"))
        if path.is_dir() and not path.is_symlink()
    ]
    found = [path for root in roots for path in (root, *root.rglob("*")) if path.is_dir()]
    return sorted(found, key=lambda path: len(path.parts), reverse=True)


def _processes(home: LabHome) -> set[int]:
    """Ids of processes in the node's containers and namespaces."""
    found = set()
    for group in _groups(home):
        with contextlib.suppress(OSError):
            found |= {int(line) for line in (group / "cgroup.procs").read_text().split()}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(NODE_MARK) == tag(home):
                found.add(process.pid)
    return found


def leftovers(home: LabHome) -> list[str]:
    """Return what there is of the node outside of the lab's folder, for people."""
    found = [f"process {pid}" for pid in sorted(_processes(home))] + [
        f"control group {path}" for path in _groups(home)
    ]
    return found + (
        [f"interface {tag(home)}"] if Path("/sys/class/net", tag(home)).exists() else []
    )


def sweep(home: LabHome) -> None:
    """Kill the node's containers and programs, and remove its control groups and interface."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while remaining := leftovers(home):
        for pid in _processes(home):
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).kill()
        subprocess.run(["ip", "link", "delete", tag(home)], capture_output=True, check=False)
        for group in _groups(home):
            with contextlib.suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            raise LabError(
                f"parts of the real node remain: {', '.join(remaining[:5])}",
                "run `make lab-down` again; a process may wait for a disk",
            )
        time.sleep(_INTERVAL_SECONDS)


def make_group(home: LabHome) -> None:
    """Create the control group that holds all pods, in every hierarchy."""
    hierarchies = (
        [CGROUPS]
        if (CGROUPS / "cgroup.controllers").exists()
        else [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]
    )
    for hierarchy in hierarchies:
        group = hierarchy / tag(home)
        group.mkdir(exist_ok=True)
        # Version 1: a group has neither processors nor memory of its own until it gets some.
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists():
                (group / name).write_text((hierarchy / name).read_text())
