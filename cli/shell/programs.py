"""Programs on this machine, run for their output."""

import os
import shutil
import subprocess

from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder


def output_of(*command: str, seconds: float = 20) -> str:
    """Run a program in the project; return its output.

    Raises:
        BerthError: the program is not there, fails, or takes longer than a number of seconds.
    """
    name = command[0]
    if shutil.which(name) is None:
        raise BerthError(f"{name} is not on PATH", f"install {name}, or add its folder to PATH")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            text=True,
            timeout=seconds,
            cwd=project_folder(),
            env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except subprocess.TimeoutExpired:
        raise BerthError(
            f"{' '.join(command)} took longer than {seconds:.0f} s",
            "try again; look at the network and the program's own log",
        ) from None
    except OSError as error:
        raise BerthError(str(error)) from None
    if done.returncode:
        raise BerthError(done.stderr.strip() or f"{name} exited with {done.returncode}")
    return done.stdout.strip()
