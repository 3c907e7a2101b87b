"""Checkout as a reader has it: the files of a clone, and an environment without a lab or a virtual
environment.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.pages.page import CLONE, COMMANDS, Block
from tests.pages.shell import Ran, Shell

_OF_A_LAB = ("BERTH_", "GOOGLE_", "HELM_", "KUBECONFIG", "PULUMI_", "PYTHONPATH", "VIRTUAL_ENV")


def copy(folder: Path) -> Path:
    """Copy the files of a fresh clone, with this working tree's changes; return the folder."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        source = CLONE / name
        target = folder / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return folder


def install(folder: Path) -> None:
    """Give a checkout the packages of the Python that runs this, as `make` would install them.

    An installation takes minutes of a core; .ci/run makes one in a fresh clone. Files are hard
    links where the file system allows, but for those that name the clone or its environment.
    """
    old = Path(sys.prefix)
    new = folder / ".venv"
    shutil.copytree(old, new, symlinks=True, copy_function=_link)
    packages = (
        new / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    )
    for path in (
        *(new / "bin").iterdir(),
        *packages.glob("__editable__*berth*"),
        new / "pyvenv.cfg",
    ):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        here = content.replace(f"{old}".encode(), f"{new}".encode()).replace(
            f"{CLONE}".encode(), f"{folder}".encode()
        )
        if here != content:
            mode = path.stat().st_mode
            path.unlink()  # the clone's own file stays as it is
            path.write_bytes(here)
            path.chmod(mode)
    (new / "installed").unlink(missing_ok=True)
    (new / "installed").touch()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # such as: on another file system
        shutil.copy2(source, target)


def readers_environment() -> dict[str, str]:
    """Return this process's environment without a virtual environment on PATH and without a lab."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(_OF_A_LAB)
    }
    parts = variables["PATH"].split(os.pathsep)
    return {**variables, "PATH": os.pathsep.join(part for part in parts if ".venv" not in part)}


def do(shell: Shell, folder: Path, block: Block, *, all_commands: bool = False) -> Ran | None:
    """Do what a reader does with a block; return the run of its commands, None for other blocks.

    Args:
        shell: the reader's shell.
        folder: the reader's checkout.
        block: a block of a page.
        all_commands: commands run although the mark says `not run`.
    """
    if block.marks.written_to:
        _write(folder / block.marks.written_to, yaml.safe_load(block.text))
    return shell.run(block) if block.runs or (all_commands and block.language in COMMANDS) else None


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    """Add settings to a file of YAML, as a reader does who keeps the rest."""
    present = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(yaml.safe_dump(_over(present, settings), sort_keys=False), encoding="utf-8")


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _over(value, above[key])
        for key, value in below.items()
        if isinstance(value, dict) and isinstance(above.get(key), dict)
    }
    return {**below, **above, **both}
