"""Package of a working folder, as Ray unpacks it on its nodes.

A package is a zip with paths from the folder, named by a hash of its content, so that the same
files are uploaded once. Each folder's `.gitignore` and `.rayignore` leave files out, and so do
Ray's own default excludes (ray 2.60.0, python/ray/_private/runtime_env/packaging.py,
`get_uri_for_package` and `_dir_travel`; python/ray/_private/ray_constants.py).
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pathspec import GitIgnoreSpec

from berth.components.core.errors import BadInputError
from berth.components.core.words import counted

EXCLUDED = (".git", ".venv", "venv", "__pycache__")
"""Names that Ray leaves out (`RAY_RUNTIME_ENV_DEFAULT_EXCLUDES`)."""
IGNORE_FILES = (".gitignore", ".rayignore")
LARGEST = 100 * 2**20
"""Most bytes that Ray's dashboard takes (`DASHBOARD_CLIENT_MAX_SIZE`)."""

_LISTED = 5
_SAME_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class FolderPackage:
    """Package that is written."""

    name: str
    size: int
    """Number of bytes."""
    files: int

    def __str__(self) -> str:
        return f"{counted(self.files, 'file')}, {size_in_words(self.size)}"


def write_package(folder: Path, target: IO[bytes]) -> FolderPackage:
    """Write a folder's package to an empty file; return what was written.

    Raises:
        BadInputError: the folder cannot be read, or is larger than Ray takes.
    """
    if not folder.is_dir():
        raise BadInputError(
            f"--working-dir: {folder} is not a folder", "name a folder, or write --no-working-dir"
        )
    sizes: dict[str, int] = {}
    with ZipFile(target, "w", ZIP_DEFLATED) as package:
        for path, name in files_of(folder):
            try:
                sizes[name] = path.stat().st_size
                _add(package, path, name)
            except OSError as error:
                raise BadInputError(
                    f"--working-dir: {path} cannot be read: {error.strerror}",
                    "leave it out with a .rayignore file",
                ) from None
            if target.tell() > LARGEST:
                raise _too_large(folder, sizes)
    size = target.tell()
    if size > LARGEST:
        raise _too_large(folder, sizes)
    target.seek(0)
    digest = hashlib.sha1(usedforsecurity=False)
    while chunk := target.read(2**20):
        digest.update(chunk)
    target.seek(0)
    return FolderPackage(f"_ray_pkg_{digest.hexdigest()}.zip", size, len(sizes))


def files_of(
    folder: Path,
    name: str = "",
    ignored: Sequence[tuple[GitIgnoreSpec, int]] = ((GitIgnoreSpec.from_lines(EXCLUDED), 0),),
    above: frozenset[str] = frozenset(),
) -> Iterator[tuple[Path, str]]:
    """Yield the files of a folder that are not left out, each with its name in the package."""
    real = os.path.realpath(folder)
    if real in above:  # a link to a folder above
        return
    for ignore in IGNORE_FILES:
        file = folder / ignore
        if file.is_file():
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            ignored = [*ignored, (GitIgnoreSpec.from_lines(lines), len(name))]
    for path in sorted(folder.iterdir()):
        inside = path.is_dir()
        full = f"{name}{path.name}{'/' if inside else ''}"
        if any(spec.match_file(full[start:]) for spec, start in ignored):
            continue
        if inside:
            yield from files_of(path, full, ignored, above | {real})
        elif path.is_file():
            yield path, full


def _add(package: ZipFile, path: Path, name: str) -> None:
    """Add a file without its date: the same files make the same package."""
    entry = ZipInfo(name, _SAME_DATE)
    entry.external_attr = (path.stat().st_mode & 0xFFFF) << 16
    entry.compress_type = ZIP_DEFLATED
    with path.open("rb") as source, package.open(entry, "w", force_zip64=True) as target:
        shutil.copyfileobj(source, target)


def _too_large(folder: Path, sizes: dict[str, int]) -> BadInputError:
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LISTED]
    listed = ", ".join(f"{name} ({size_in_words(sizes[name])})" for name in largest)
    return BadInputError(
        f"--working-dir: {folder} has more than the {size_in_words(LARGEST)} that Ray takes;"
        f" largest: {listed}",
        "leave data out with a .rayignore file (as .gitignore), and read it from a bucket or a"
        " volume",
    )


def size_in_words(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 / 10 else f"{size / 2**10:.1f} KiB"
