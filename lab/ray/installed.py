"""Ray's packages in the tools' cache, and the virtual environment that a head has on top of them.

A package that somebody installs in a head goes into the head's own environment, and with it.
"""

import hashlib
import platform
import sys
import venv
from pathlib import Path

from berth.components.hardware.versions import RAY
from berth.lab.progress import LabProgress
from berth.lab.toolchain.cache import Cache, default_folder
from berth.lab.toolchain.failures import GIB, explain, require_space
from berth.lab.toolchain.pip_target import install_into

REQUIREMENTS = Path(__file__).with_name("requirements.txt")

_NAME = f"Ray {RAY}"


def packages(progress: LabProgress) -> Path:
    """Return the folder of Ray's packages, which are installed first where they are missing.

    Raises:
        LabError: there is no network, no room, or no release for this Python.
    """
    of_this = f"{sys.implementation.cache_tag} {platform.system()} {platform.machine()}"
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + of_this.encode()).hexdigest()
    return Cache(default_folder(), progress).obtain(
        "ray", key, _install, f"installing {_NAME}", _NAME
    )


def _install(folder: Path) -> None:
    require_space(folder, GIB, _NAME)
    result = install_into(folder, REQUIREMENTS)
    if result.returncode != 0:
        raise explain(_NAME, result.stderr + result.stdout, folder)


def environment(folder: Path, ray: Path, code: Path) -> Path:
    """Make a virtual environment with Ray's packages and code; return its folder of programs."""
    venv.create(folder, symlinks=True, clear=True)
    programs = folder / "bin"
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ray.pth").write_text(f"{ray}\n{code}\n")
    for script in (ray / "bin").iterdir():
        first, _, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            (programs / script.name).write_bytes(
                b"#!" + str(programs / "python").encode() + b"\n" + rest
            )
            (programs / script.name).chmod(0o755)
    return programs
