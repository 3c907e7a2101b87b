"""A folder of build results that is only ever used whole.

An entry is made in a folder of its own, gets its manifest last and its name by one rename; so an interrupted build
leaves nothing that looks like an entry. Every use compares the entry with its manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berth.lab.locking import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = "manifest.json"


def default_folder() -> Path:
    """The user's cache folder for berth's tools (`XDG_CACHE_HOME`, else `~/.cache`)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "berth" / "tools"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)


def _write_manifest(folder: Path, digests: dict[str, str]) -> None:
    files = {}
    for name, digest in digests.items():
        status = (folder / name).stat()
        files[name] = {"sha256": digest, "size": status.st_size, "modified": status.st_mtime_ns}
    partial = folder / f"{MANIFEST}.partial"
    partial.write_text(json.dumps({"files": files}, indent=1))
    partial.replace(folder / MANIFEST)


def defect(folder: Path) -> str | None:
    """What is wrong with an entry, or None.

    Sizes are compared every time; contents where the modification time is not the recorded one.
    """
    if not folder.is_dir():
        return "it is not there"
    try:
        recorded: dict[str, dict[str, Any]] = json.loads((folder / MANIFEST).read_text())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest is missing or unreadable"
    restamp = False
    for name, expected in recorded.items():
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            return f"{name} is missing"
        if status.st_size != expected["size"]:
            return f"{name} has {status.st_size} bytes instead of {expected['size']}"
        if status.st_mtime_ns != expected["modified"]:
            if _digest(path) != expected["sha256"]:
                return f"{name} has other contents than those that were built"
            restamp = True
    if restamp:  # A copied or restored cache: the same bytes under other times.
        with contextlib.suppress(OSError):
            _write_manifest(folder, {name: expected["sha256"] for name, expected in recorded.items()})
    return None


@dataclass(frozen=True)
class Cache:
    """Entries by name and key.

    Attributes:
        folder: where the entries are.
        say: told, in one line, what a person should know (an entry rebuilt, a wait for another build).
    """

    folder: Path
    say: Callable[[str], None]

    def path(self, name: str, key: str) -> Path:
        """Where an entry is, or would be."""
        return self.folder / f"{name}-{key[:16]}"

    def holds(self, name: str, key: str) -> bool:
        """Whether a whole entry is there."""
        return defect(self.path(name, key)) is None

    def obtain(self, name: str, key: str, make: Callable[[Path], None]) -> Path:
        """The entry's folder, made first if it isn't there or isn't whole.

        Args:
            name: what it is.
            key: hash of everything that decides its contents.
            make: fills an empty folder with the entry's files; what it raises is passed on and nothing is kept.
        """
        path = self.path(name, key)
        if defect(path) is None:
            return path
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self.folder / f".{path.name}.lock"
        with exclusive(lock, lambda: self.say(f"{name}: waiting for another build of the same thing")):
            if path.exists():
                problem = defect(path)
                if problem is None:
                    return path
                self.say(f"{name}: the cached build is broken ({problem}); building it again")
                shutil.rmtree(path)
            prefix = f".{path.name}.making-"
            for leftover in self.folder.glob(f"{prefix}*"):  # Of a build that was killed: we hold the lock.
                shutil.rmtree(leftover)
            making = Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder))
            try:
                make(making)
                _write_manifest(making, {str(file.relative_to(making)): _digest(file) for file in _files(making)})
                making.chmod(0o755)
                making.rename(path)
            finally:
                shutil.rmtree(making, ignore_errors=True)
        return path
