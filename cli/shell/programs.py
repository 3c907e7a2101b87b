"""Programs on this machine, run for their output."""

from __future__ import annotations

import os
import shutil
import subprocess

from berth.components.core.errors import BerthError
from berth.stacks.files import stack_file


def output_of(*command: str, seconds: float = 20) -> str:
    """Run a program in the project; return its output.

    Raises:
        BerthError: it is not on PATH, fails or takes too long; the text is what it wrote to stderr.
    """
    if shutil.which(command[0]) is None:
        raise BerthError(f"{command[0]} is not on PATH")
    try:
        done = subprocess.run(
            command,
            cwd=stack_file.project(),
            env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise BerthError(f"{' '.join(command)} took longer than {seconds:.0f} s") from None
    except OSError as error:
        raise BerthError(str(error)) from None
    if done.returncode:
        raise BerthError(done.stderr.strip() or f"{command[0]} exited with {done.returncode}")
    return done.stdout.strip()
