"""Causes of failed builds and downloads, found in the output of the program that failed."""

import re
import shutil
from pathlib import Path

from berth.lab.errors import USAGE, LabError, quoted

GIB = 1 << 30

_MAKE_ROOM = (
    "make room there, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE, then run it"
    " again"
)
_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded|errno 28", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|network is unreachable|connection refused|connection reset|i/o timeout|"
    r"TLS handshake|temporary failure in name resolution|failed to establish a new connection|"
    r"could not find a version that satisfies|no matching distribution|proxyconnect|certificate|"
    r"(?:read|connect) timed? ?out|module lookup disabled|\b50[234] ",
    re.IGNORECASE,
)


def explain(what: str, output: str, folder: Path) -> LabError:
    """Return the error for a build or download of `what` into a folder, from its output."""
    if _DISK_FULL.search(output):
        free = shutil.disk_usage(folder).free / GIB
        problem = f"the disk is full: building {what} stopped ({free:.1f} GiB are free at {folder})"
        return LabError(problem, _MAKE_ROOM)
    for line in output.splitlines():
        if _NO_NETWORK.search(line):
            return LabError(
                f"no network: the sources of {what} could not be downloaded ({line.strip()})",
                "check the connection (and GOPROXY, HTTPS_PROXY or pip's index if you set them),"
                " then run it again: finished parts are kept",
            )
    return LabError(
        f"building {what} failed; its last lines:\n{quoted(output)}",
        "run it again; if it fails the same way, please report these lines",
    )


def require_space(folder: Path, bytes_needed: int, what: str) -> None:
    """Check that there is disk space before the work begins."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < bytes_needed:
        raise LabError(
            f"not enough disk space at {folder}: {what} needs about {bytes_needed / GIB:.0f} GiB, "
            f"{free / GIB:.1f} GiB are free",
            _MAKE_ROOM,
            code=USAGE,
        )
