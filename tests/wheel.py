"""A wheel of the tree, built once, and a folder with what it installs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
COPIED = (
    "berth",
    "cli",
    "components",
    "lab",
    "stacks",
    ".github",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "__main__.py",
)


def build(folder: Path) -> Path:
    """Build a wheel of a copy of the tree: setuptools leaves a build folder beside what it
    builds.
    """
    source = folder / "source"
    source.mkdir()
    for name in COPIED:
        path = CLONE / name
        if path.is_dir():
            shutil.copytree(path, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".lab"))
        else:
            shutil.copy(path, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(folder), str(source)], check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path) -> Path:
    """Unpack a wheel, and return the folder that goes on Python's path."""
    folder = wheel.parent / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder
