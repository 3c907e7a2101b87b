"""What a failed build or download means, told from what the program wrote."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from berth.lab.errors import USAGE, LabError

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30

_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded|errno 28", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|network is unreachable|connection refused|connection reset|i/o timeout|"
    r"TLS handshake|temporary failure in name resolution|failed to establish a new connection|"
    r"could not find a version that satisfies|no matching distribution|proxyconnect|certificate|"
    r"(?:read|connect) timed? ?out|module lookup disabled|\b50[234] ",
    re.IGNORECASE,
)


def explain(what: str, output: str, folder: Path) -> LabError:
    """The error for a build or download that failed.

    Args:
        what: what was being made, as a person calls it.
        output: what the failed program wrote.
        folder: where its results were to go.
    """
    lines = [line for line in output.strip().splitlines() if line.strip()]
    if _DISK_FULL.search(output):
        free = shutil.disk_usage(folder).free / GIB
        return LabError(
            f"the disk is full: building {what} stopped ({free:.1f} GiB are free at {folder})",
            "make room there, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE, then run it again",
        )
    for line in lines:
        if _NO_NETWORK.search(line):
            return LabError(
                f"no network: what {what} is built from could not be downloaded ({line.strip()})",
                "check the connection (and GOPROXY, HTTPS_PROXY or pip's index if you set them), then run it again: "
                "finished parts are kept",
            )
    quoted = "\n".join(f"    {line}" for line in lines[-8:]) or "    (it wrote nothing)"
    return LabError(
        f"building {what} failed; the last it said:\n{quoted}",
        "run it again; if it fails the same way, please report these lines",
    )


def require_space(folder: Path, bytes_needed: int, what: str) -> None:
    """Refuse to begin what can't end for want of disk space.

    Raises:
        LabError: less than that is free where the folder is or would be.
    """
    existing = folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < bytes_needed:
        raise LabError(
            f"not enough disk space at {folder}: {what} needs about {bytes_needed / GIB:.0f} GiB, "
            f"{free / GIB:.1f} GiB are free",
            "make room there, or move the caches with XDG_CACHE_HOME, GOCACHE and GOMODCACHE, then run it again",
            code=USAGE,
        )
