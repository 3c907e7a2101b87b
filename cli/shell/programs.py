"""Programs on this machine, run for their output."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder


def run_program(
    command: Sequence[str], seconds: float, late: str, *, given: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code; return what it wrote.

    Raises:
        OSError: it cannot be started.
    """
    try:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired:
        raise BerthError(late) from None


def output_of(*command: str, seconds: float = 20) -> str:
    """Run a program in the project; return its output."""
    if shutil.which(command[0]) is None:
        raise BerthError(f"{command[0]} is not on PATH")
    try:
        done = run_program(
            command,
            seconds,
            f"{' '.join(command)} took longer than {seconds:.0f} s",
            cwd=project_folder(),
            env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except OSError as error:
        raise BerthError(str(error)) from None
    if done.returncode:
        raise BerthError(done.stderr.strip() or f"{command[0]} exited with {done.returncode}")
    return done.stdout.strip()
