"""Locks of Pulumi on stacks' states, and whether their holders still run.

An update that is killed leaves its lock behind. A lock is a JSON file in the backend: pid,
username, hostname and timestamp of its holder (pulumi, pkg/backend/diy/lock.go).
"""

import json
import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_HOLDER = re.compile(r"(\S+): created by (\S+)@(\S+) \(pid (\d+)\) at (\S+)")
"""Holder of a lock in the engine's error about it."""


@dataclass(frozen=True)
class Lock:
    """Lock on a stack's state.

    Attributes:
        place: path or URL of the lock's file.
        user: user who runs the update.
        host: machine on which it runs.
        pid: its process there.
        since: time at which the update began.
    """

    place: str
    user: str
    host: str
    pid: int
    since: str

    @property
    def is_here(self) -> bool:
        """Whether the holder is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_dead(self) -> bool:
        """Whether the holder was a process of this machine that no longer runs."""
        if not self.is_here:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False  # another user's
        return False


def locks_in(backend: Path, stack: str, project: str = "*") -> list[Lock]:
    """Return the locks on a stack's state in a backend's folder; by default of any project."""
    locks = []
    for path in sorted(backend.glob(f".pulumi/locks/*/{project}/{stack}/*.json")):
        with suppress(OSError, ValueError, KeyError):
            held = json.loads(path.read_text(encoding="utf-8"))
            since = re.sub(r"\.\d+", "", str(held["timestamp"]))
            locks.append(
                Lock(str(path), held["username"], held["hostname"], int(held["pid"]), since)
            )
    return locks


def lock_in_error(text: str) -> Lock | None:
    """Return the lock that an error of the engine is about; None for another error."""
    found = _HOLDER.search(text)
    if found is None:
        return None
    return Lock(found[1], found[2], found[3], int(found[4]), found[5])
