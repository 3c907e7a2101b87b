"""Kubernetes plugins of killed engines: each goes on with what it was asked to do.

An engine that is killed takes no plugin with it, and the plugin ends an operation that has begun
before it asks whether its engine is still there (pulumi, pkg/resource/provider/main.go).
"""

import re
import subprocess
from pathlib import Path

_PLUGIN = re.compile(r"(^|/)pulumi-resource-kubernetes( |$)")
_ENGINE = re.compile(r"(^|/)pulumi( |$)")


def orphans() -> list[int]:
    """Return the pids of this project's plugins without an engine; none where `ps` is missing."""
    try:
        command = ("ps", "-A", "-ww", "-o", "pid=,ppid=,args=")
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    programs = {pid: " ".join(words) for pid, _, *words in rows}
    return [
        int(pid)
        for pid, parent, *_ in rows
        if _PLUGIN.search(programs[pid]) and not _ENGINE.search(programs.get(parent, "")) and _is_here(pid)
    ]


def _is_here(pid: str) -> bool:
    """Return whether a plugin is of this folder's project; yes where the system does not say."""
    try:
        return Path("/proc", pid, "cwd").readlink() == Path.cwd()
    except OSError:
        return True
