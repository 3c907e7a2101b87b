"""Folder of build results, of which only complete ones are used.

An entry is created in a folder of its own, gets its manifest last and its name by one rename, so
that an interrupted build leaves nothing that looks like an entry. Every use compares the entry with
its manifest.
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

from berth.components.core import whole_file
from berth.lab.locking import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    from berth.lab.progress import Progress

MANIFEST = "manifest.json"


def default_folder() -> Path:
    """Return the user's cache folder of berth's tools (`XDG_CACHE_HOME`, else `~/.cache`)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "berth" / "tools"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_manifest(folder: Path, digests: dict[str, str]) -> None:
    entries = {}
    for name, digest in digests.items():
        status = (folder / name).stat()
        entries[name] = {"sha256": digest, "size": status.st_size, "modified": status.st_mtime_ns}
    whole_file.write(folder / MANIFEST, json.dumps({"files": entries}, indent=1))


def defect(folder: Path) -> str | None:
    """Return an entry's defect, or None: contents are compared where the time differs."""
    if not folder.is_dir():
        return "missing"
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
        progress: reports rebuilt entries, builds and waits for other builds.
    """

    folder: Path
    progress: Progress

    def path(self, name: str, key: str) -> Path:
        """Return the path of an entry, present or not."""
        return self.folder / f"{name}-{key[:16]}"

    def obtain(self, name: str, key: str, make: Callable[[Path], None], doing: str = "", done: str = "") -> Path:
        """Return the folder of an entry, which is created first if it is missing or incomplete.

        Args:
            name: what it is.
            key: hash of everything that decides its contents.
            make: fills an empty folder with the entry's files; if it raises, nothing is left.
            doing: line of the progress while it is created; without one, there is no progress.
            done: line of the progress after that.
        """
        path = self.path(name, key)
        if defect(path) is not None:
            with self.progress.step(doing, done) if doing else contextlib.nullcontext():
                self._create(path, name, make)
        return path

    def _create(self, path: Path, name: str, make: Callable[[Path], None]) -> None:
        def waiting() -> None:
            self.progress.say(f"{name}: waiting for another build of the same thing")

        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / f".{path.name}.lock", waiting):
            if path.exists():
                problem = defect(path)
                if problem is None:
                    return
                self.progress.say(f"{name}: the cached build is broken ({problem}); building it again")
                shutil.rmtree(path)
            prefix = f".{path.name}.making-"
            for leftover in self.folder.glob(f"{prefix}*"):  # Of a killed build: this one holds the lock.
                shutil.rmtree(leftover)
            partial = Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder))
            try:
                make(partial)
                paths = sorted(path for path in partial.rglob("*") if path.is_file())
                _write_manifest(partial, {str(path.relative_to(partial)): _digest(path) for path in paths})
                partial.chmod(0o755)
                partial.rename(path)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
