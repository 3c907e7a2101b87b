"""Lab of the project's folder: its variables are this process's, unless a shell has set others.

The folder wins over a login of Pulumi's: a command that was meant for the lab must not reach a real
environment. PULUMI_BACKEND_URL, or another folder, leads to a real one.
"""

import json
import os
from pathlib import Path
from urllib.parse import unquote

from berth.components.core.errors import BerthError
from berth.components.core.project import project_or_none, shown_path
from berth.stacks.files.passphrase import LAB_SIGN

_LAB = "BERTH_LAB"
_BACKEND = "PULUMI_BACKEND_URL"
_VARIABLES = "environment.json"
"""File that a lab has while it is up (berth.lab.lifecycle)."""


def lab_of_project() -> Path | None:
    """Return the folder of the project's lab; None without one, or if a shell names another one."""
    project = project_or_none()
    if project is None or os.environ.get(_LAB) or os.environ.get(_BACKEND):
        return None
    folder = project / ".lab"
    return folder if (folder / LAB_SIGN).is_file() else None


def enter_lab() -> None:
    """Take over the variables of the project's lab, if it is up."""
    lab = lab_of_project()
    if lab is None:
        return
    try:
        variables: dict[str, str] = json.loads((lab / _VARIABLES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    path = os.environ.get("PATH", os.defpath)
    os.environ.pop("PULUMI_CONFIG_PASSPHRASE_FILE", None)
    os.environ.update(variables)
    os.environ["PATH"] = f"{variables['PATH']}{os.pathsep}{path}"


def require_up() -> None:
    """Refuse to go on while the lab of the project, or of the shell, is not up.

    Raises:
        BerthError: a lab is meant, and it is not up.
    """
    if lab := lab_of_project():
        raise BerthError(
            f"the lab in {shown_path(lab)} is not up",
            f"make lab brings it up; with {_BACKEND} set, the real state backend is used",
        )
    lab = _lab_of_shell()
    if lab and (lab / LAB_SIGN).is_file() and not (lab / _VARIABLES).is_file():
        raise BerthError(f"the lab in {shown_path(lab)} is not up", "make lab brings it up")


def _lab_of_shell() -> Path | None:
    """Return the folder of the lab that the shell's variables lead to."""
    folder = os.environ.get(_LAB, "")
    backend = unquote(os.environ.get(_BACKEND, ""))
    return Path(folder) if folder and folder in backend else None
