"""Packages that pip installs into a folder of their own, by pinned hashes."""

import subprocess
import sys
from pathlib import Path


def install_into(folder: Path, requirements: Path) -> subprocess.CompletedProcess[str]:
    """Install what a file of requirements pins into a folder, whatever comes of it.

    Args:
        folder: folder of the packages.
        requirements: file with the packages, their dependencies and the hashes of all of them.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
        "--only-binary=:all:",
        "--require-hashes",
        f"--target={folder}",
        "-r",
        str(requirements),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)
