"""Lab of the project's folder: its variables are this process's, unless a shell has set others.

The folder wins over a login of Pulumi's: a command that was meant for the lab must not reach a real
environment. PULUMI_BACKEND_URL, or another folder, leads to a real one.
"""

import json
import os
from pathlib import Path
from urllib.parse import unquote

from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder, shown_path
from berth.stacks.files.passphrase import LAB_SIGN

_SET_BY_A_SHELL = ("BERTH_LAB", "PULUMI_BACKEND_URL")
_VARIABLES = "environment.json"
"""File that a lab has while it is up (berth.lab.lifecycle)."""


def folder() -> Path | None:
    """Return the folder of the project's lab; None without one, or if a shell names another one."""
    found = project_folder() / ".lab"
    return (
        found
        if (found / LAB_SIGN).is_file() and not any(map(os.environ.get, _SET_BY_A_SHELL))
        else None
    )


def enter() -> None:
    """Take over the variables of the project's lab, if it is up."""
    lab = folder()
    if lab is None:
        return
    try:
        variables: dict[str, str] = json.loads((lab / _VARIABLES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    os.environ.pop("PULUMI_CONFIG_PASSPHRASE_FILE", None)
    os.environ.update(
        variables | {"PATH": f"{variables['PATH']}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    )


def require_up() -> None:
    """Refuse to go on while the lab of the project, or of the shell, is not up."""
    if of_project := folder():
        raise BerthError(
            f"the lab in {shown_path(of_project)} is not up",
            "make lab brings it up; with PULUMI_BACKEND_URL set, the real state backend is used",
        )
    lab, backend = (os.environ.get(name, "") for name in _SET_BY_A_SHELL)
    if (
        lab
        and lab in unquote(backend)
        and (Path(lab) / LAB_SIGN).is_file()
        and not (Path(lab) / _VARIABLES).is_file()
    ):
        raise BerthError(f"the lab in {shown_path(Path(lab))} is not up", "make lab brings it up")
