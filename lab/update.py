"""`pulumi up` of the lab's own stack, as a user would run it, plus what an earlier one that was killed left behind."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from typing import TYPE_CHECKING

import psutil

from berth.lab import environment
from berth.lab.errors import LabError
from berth.lab.home import CLONE
from berth.lab.lifecycle import stacks
from berth.stacks import stack_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from berth.lab.home import Home
    from berth.lab.progress import Progress

STACK = "lab"


def pulumi(home: Home, *arguments: str) -> int:
    """Run the engine in the clone with the terminal's input and output.

    Ctrl-C reaches the engine from the terminal; it is given the time to end its update in good order.

    Returns:
        Its exit code.
    """
    process = subprocess.Popen(["pulumi", *arguments], cwd=CLONE, env=environment.complete(home))
    interrupted = False
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    return code


def dead_locks(home: Home, stack: str) -> list[Path]:
    """Locks on a stack's state whose holder, a process of this machine, runs no more."""
    dead = []
    for path in home.backend.glob(f".pulumi/locks/*/*/{stack}/*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            lock = json.loads(path.read_text())
            if lock["hostname"] == socket.gethostname() and not psutil.pid_exists(lock["pid"]):
                dead.append(path)
    return dead


def _engineers() -> list[str]:
    """The shipped stacks of engineers that berth on the lab: made empty, so that `pulumi up -s alice` just works."""
    found = []
    for name in stack_file.stack_names():
        with contextlib.suppress(stack_file.StackFileError):
            engineer = stack_file.read(stack_file.stack_path(name)).settings.get("engineer")
            if isinstance(engineer, dict) and engineer.get("environment") == STACK:
                found.append(name)
    return found


def update(home: Home, progress: Progress, *, refresh: bool, options: Sequence[str] = ()) -> None:
    """Bring stack `lab` to what its settings say.

    Args:
        home: a lab that is up.
        progress: where remarks go.
        refresh: first compare the state with what there is.
        options: more options for `pulumi up`.

    Raises:
        LabError: the update failed; the engine has said why.
    """
    for name in sorted({STACK, *_engineers()} - set(stacks(home))):
        if pulumi(home, "stack", "init", name, "--no-select") != 0:
            raise LabError(f"stack {name} could not be made", "see Pulumi's own words above")
    for path in dead_locks(home, STACK):
        progress.say(f"an earlier update of stack {STACK} was killed: its lock is removed")
        path.unlink(missing_ok=True)
    arguments = [
        "up",
        "--stack",
        STACK,
        "--yes",
        "--skip-preview",
        "--suppress-outputs",
        *(["--refresh"] if refresh else []),
        *options,
    ]
    if pulumi(home, *arguments) != 0:
        raise LabError(
            f"the update of stack {STACK} did not succeed; Pulumi says above what failed and why",
            "mend that and run `make lab` again: what was made stays, the rest is tried again",
        )
