"""Folder of build results, of which only complete ones are used.

An entry is created in a folder of its own, gets its manifest last and its name by one rename, so
that an interrupted build leaves nothing that looks like an entry. Every use compares the sizes of
the entry's files with its manifest.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from berth.lab.locking import exclusive
from berth.lab.progress import LabProgress

MANIFEST = "manifest.json"


def default_folder() -> Path:
    """Return the user's cache folder of berth's tools (`XDG_CACHE_HOME`, else `~/.cache`)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "berth" / "tools"


def defect(folder: Path) -> str | None:
    """Return an entry's defect, or None."""
    if not folder.is_dir():
        return "missing"
    try:
        recorded: dict[str, dict[str, int]] = json.loads((folder / MANIFEST).read_text())["files"]
        sizes = {name: file["size"] for name, file in recorded.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest is missing or unreadable"
    for name, size in sizes.items():
        try:
            there = (folder / name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if there != size:
            return f"{name} has {there} bytes instead of {size}"
    return None


@dataclass(frozen=True)
class Cache:
    """Entries by name and key."""

    folder: Path
    """Where the entries are."""
    progress: LabProgress
    """Reports rebuilt entries, builds and waits for other builds."""

    def path(self, name: str, key: str) -> Path:
        """Return the path of an entry, present or not."""
        return self.folder / f"{name}-{key[:16]}"

    def obtain(
        self, name: str, key: str, make: Callable[[Path], None], doing: str = "", done: str = ""
    ) -> Path:
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
                self.progress.say(
                    f"{name}: the cached build is broken ({problem}); building it again"
                )
                shutil.rmtree(path)
            prefix = f".{path.name}.making-"
            for leftover in self.folder.glob(
                f"{prefix}*"
            ):  # Of a killed build: this one holds the lock.
                shutil.rmtree(leftover)
            partial = Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder))
            try:
                make(partial)
                paths = sorted(path for path in partial.rglob("*") if path.is_file())
                sizes = {
                    str(path.relative_to(partial)): {"size": path.stat().st_size} for path in paths
                }
                (partial / MANIFEST).write_text(json.dumps({"files": sizes}, indent=1))
                partial.chmod(0o755)
                partial.rename(path)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
