"""Kubernetes plugins of Pulumi whose engine was killed, by the list of this machine's processes.

An engine that is killed takes no Kubernetes plugin with it, and the plugin ends an operation that
has begun before it asks whether its engine is still there (pulumi,
pkg/resource/provider/main.go).
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PLUGIN = re.compile(r"(^|/)pulumi-resource-kubernetes( |$)")
_ENGINE = re.compile(r"(^|/)pulumi( |$)")
_PS = ("ps", "-A", "-ww", "-o", "pid=,ppid=,args=")


@dataclass(frozen=True)
class _ListedProcess:
    pid: int
    parent: int
    command: str


def orphaned_plugins() -> list[int]:
    """Return the pids of this project's plugins without an engine; none where `ps` is missing."""
    processes = _processes()
    return [
        process.pid
        for process in processes.values()
        if _PLUGIN.search(process.command)
        and not _has_engine(process, processes)
        and _is_of_this_project(process.pid)
    ]


def _has_engine(plugin: _ListedProcess, processes: dict[int, _ListedProcess]) -> bool:
    parent = processes.get(plugin.parent)
    return parent is not None and _ENGINE.search(parent.command) is not None


def _is_of_this_project(pid: int) -> bool:
    """Return whether a plugin is of this folder's project; yes where the system does not say."""
    try:
        return Path("/proc", str(pid), "cwd").readlink() == Path.cwd()
    except OSError:
        return True


def _processes() -> dict[int, _ListedProcess]:
    """Return the processes of this machine by their pids."""
    try:
        listed = subprocess.run(_PS, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    processes: dict[int, _ListedProcess] = {}
    for line in listed.splitlines():
        pid, parent, *command = line.split(maxsplit=2)
        processes[int(pid)] = _ListedProcess(int(pid), int(parent), " ".join(command))
    return processes
