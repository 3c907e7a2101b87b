"""Wheel and source distribution of a tree, folders that they are installed in, and virtual
environments without a download.
"""

import shutil
import subprocess
import sys
import venv
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from berth.components.core.distribution import NAME

CLONE = Path(__file__).resolve().parents[1]
COPIED = (
    "berth",
    "cli",
    "components",
    "docs",
    "images",
    "lab",
    "stacks",
    ".github",
    "pyproject.toml",
    "CHANGELOG.md",
    "README.md",
    "LICENSE",
    "__main__.py",
)
_BUILD_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


def copy_tree(source: Path) -> Path:
    """Copy what a package is built of: setuptools leaves a build folder beside what it builds."""
    source.mkdir(parents=True)
    for name in COPIED:
        path = CLONE / name
        if path.is_dir():
            shutil.copytree(
                path,
                source / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__", ".lab"),
            )
        else:
            shutil.copy(path, source / name)
    return source


def build(folder: Path, source: Path | None = None) -> Path:
    """Build a wheel of a folder or source distribution; by default of a copy of the tree."""
    source = source or copy_tree(folder / "source")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
    ]
    subprocess.run(
        [*command, str(folder), str(source)], check=True, capture_output=True, timeout=120
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_sdist(source: Path, folder: Path) -> Path:
    """Build a source distribution of a folder."""
    command = [sys.executable, "-c", _BUILD_SDIST, str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def install(wheel: Path) -> Path:
    """Unpack a wheel, and return the folder that goes on Python's path."""
    folder = wheel.parent / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def virtual_environment(
    folder: Path, wheel: Path, extras: Collection[str] = (), *, with_pip: bool = False
) -> Path:
    """Make a virtual environment with a wheel and what it requires, and return its `bin`.

    What it requires, and pip, are links to the packages that the tests run with; pip checks that
    nothing is missing.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for path, target in _links(
        [*required(NAME, extras).values(), *([distribution("pip")] if with_pip else [])]
    ):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).symlink_to(target)
    if with_pip:
        script = folder / "bin/pip"
        script.write_text(f'#!/bin/sh\nexec {folder / "bin/python"} -m pip "$@"\n')
        script.chmod(0o755)
    pip(folder / "bin", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel))
    pip(folder / "bin", "check")
    return folder / "bin"


def _links(packages: Collection[Distribution]) -> Iterator[tuple[Path, Path]]:
    """Yield the links, by their paths in site-packages: a folder of one package is one link."""
    owners = Counter(
        top for package in packages for top in {file.parts[0] for file in package.files or ()}
    )
    for package in packages:
        # `google` is a folder of many packages.
        files = (file for file in package.files or () if ".." not in file.parts)
        for path in {
            Path(file.parts[0]) if owners[file.parts[0]] == 1 else Path(file) for file in files
        }:
            yield path, Path(str(package.locate_file(path)))


def pip(bin_folder: Path, *arguments: str) -> str:
    """Run the tests' own pip on a virtual environment, and return what it prints."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(bin_folder / "python"),
    ]
    return subprocess.run(
        [*command, *arguments], check=True, capture_output=True, text=True, timeout=120
    ).stdout


def required(package: str, extras: Collection[str]) -> dict[str, Distribution]:
    """Return what a package requires, without the package, by name."""
    found: dict[str, Distribution] = {}
    todo = [(package, extra) for extra in ("", *extras)]
    seen = set(todo)
    while todo:
        name, extra = todo.pop()
        for requirement in _requirements(name, extra):
            asked = {
                (canonicalize_name(requirement.name), extra) for extra in ("", *requirement.extras)
            }
            todo += asked - seen
            seen |= asked
            if canonicalize_name(requirement.name) != package:
                found[canonicalize_name(requirement.name)] = distribution(requirement.name)
    return found


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
