"""Taking away whatever a real node left, whether it ended well or not: found by the lab's own tag, never by guess.

Simulates nothing: it takes away what a real node left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from berth.lab.errors import LabError
from berth.lab.realnode.layout import tag
from berth.lab.realnode.processes import NODE_MARK
from berth.lab.realnode.requirements import CGROUPS

if TYPE_CHECKING:
    from berth.lab.home import Home

_PATIENCE_SECONDS = 15.0
_INTERVAL_SECONDS = 0.05


def groups(home: Home) -> list[Path]:
    """The node's control groups in every hierarchy, the innermost first."""
    name = tag(home)
    roots = [path for path in (CGROUPS / name, *CGROUPS.glob(f"*/{name}")) if path.is_dir() and not path.is_symlink()]
    found = [path for root in roots for path in (root, *root.rglob("*")) if path.is_dir()]
    return sorted(found, key=lambda path: len(path.parts), reverse=True)


def processes(home: Home) -> set[int]:
    """Ids of what runs in the node's containers and namespaces."""
    found = set()
    for group in groups(home):
        with contextlib.suppress(OSError):
            found |= {int(line) for line in (group / "cgroup.procs").read_text().split()}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(NODE_MARK) == tag(home):
                found.add(process.pid)
    return found


def link_is_there(home: Home) -> bool:
    """Whether this machine still has its end of the pair of interfaces."""
    return (Path("/sys/class/net") / tag(home)).exists()


def leftovers(home: Home) -> list[str]:
    """What there is of the node outside of the lab's folder, for people; empty when all is gone."""
    found = [f"process {pid}" for pid in sorted(processes(home))] + [f"control group {path}" for path in groups(home)]
    return found + ([f"interface {tag(home)}"] if link_is_there(home) else [])


def sweep(home: Home) -> None:
    """End the node's containers and programs, at once, and remove its control groups and interface.

    Raises:
        LabError: something would not go.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while running := processes(home):
        for pid in running:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(_INTERVAL_SECONDS)
    if link_is_there(home):
        subprocess.run(["ip", "link", "delete", tag(home)], capture_output=True, check=False)
    while left := groups(home):
        for group in left:
            with contextlib.suppress(OSError):
                group.rmdir()
        if time.monotonic() > deadline:
            break
        time.sleep(_INTERVAL_SECONDS)
    if still := leftovers(home):
        raise LabError(
            f"something of the real node would not go: {', '.join(still[:5])}",
            "run `make lab-down` again; it may wait for a disk",
        )


def make_group(home: Home) -> None:
    """Make the control group that holds all pods, in every hierarchy."""
    hierarchies = (
        [CGROUPS]
        if (CGROUPS / "cgroup.controllers").exists()
        else [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]
    )
    for hierarchy in hierarchies:
        group = hierarchy / tag(home)
        group.mkdir(exist_ok=True)
        # Of version 1: a group has no processors and no memory of its own until it is given some.
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists():
                (group / name).write_text((hierarchy / name).read_text())
