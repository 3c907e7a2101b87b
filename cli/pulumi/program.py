"""The installed `pulumi` program, run for an answer."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from berth.cli.shell import lab_here
from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder
from berth.components.plan.plan import BY_BERTH

_VARIABLES = {
    "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    BY_BERTH: "true",
}


def run_pulumi(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that needs neither the engine nor a program, whatever its exit code.

    Raises:
        BerthError: Pulumi is not installed, or cannot be run.
    """
    command = pulumi_command(*arguments)
    try:
        return subprocess.run(command, capture_output=True, check=False, **process_options({}))
    except OSError as error:
        raise BerthError(f"pulumi cannot be run: {error}", "install Pulumi again") from None


def pulumi_command(*arguments: str) -> list[str]:
    """Return the words of a command of Pulumi.

    Raises:
        BerthError: the lab that is meant is not up, or Pulumi is not installed.
    """
    lab_here.require_up()
    path = shutil.which("pulumi")
    if path is None:
        raise BerthError(
            "pulumi is not on PATH",
            "install Pulumi, or bring the lab up, which has its own: make lab",
        )
    return [path, *arguments, "--non-interactive"]


def process_options(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a process of Pulumi, with variables of its own."""
    return {
        "cwd": project_folder(),
        "env": {**os.environ, **_VARIABLES, **variables},
        "stdin": subprocess.DEVNULL,
        "text": True,
    }
