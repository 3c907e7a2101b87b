"""`pulumi up` of the lab's own stacks; the lock of a killed update is removed first."""

import contextlib
import subprocess
from pathlib import Path

from berth.components.core.project import project_folder
from berth.components.plan.paths import value_at
from berth.lab import environment
from berth.lab.errors import USAGE, LabError, quoted
from berth.lab.home import LabHome
from berth.lab.lifecycle import Running, stacks
from berth.lab.progress import LabProgress
from berth.stacks.files import stack_file
from berth.stacks.files.locks import locks_in

STACK = "lab"

_LOG_LINES = 20

_TOO_SLOW = "context deadline exceeded"
"""Error of Helm whose time for a release is over (Go, context.DeadlineExceeded)."""


def _pulumi(home: LabHome, log: Path, *arguments: str) -> int:
    """Run the engine in the project, its output in a log; return its exit code.

    Ctrl-C reaches the engine from the terminal; the engine gets the time to end its update in good
    order.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["pulumi", *arguments, "--color", "never"],
            cwd=project_folder(),
            env=environment.complete(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    interruption: KeyboardInterrupt | None = None
    while process.returncode is None:
        try:
            process.wait()
        except KeyboardInterrupt as error:
            interruption = error
    if interruption:
        raise interruption
    return process.returncode


def _engineers() -> list[str]:
    """Return stacks of engineers on the lab, created empty for `pulumi up -s NAME`."""
    found = []
    for name in stack_file.stack_names():
        with contextlib.suppress(stack_file.StackFileError):
            engineer = stack_file.read_stack_file(stack_file.stack_path(name)).settings.get(
                "engineer"
            )
            if isinstance(engineer, dict) and engineer.get("environment") == STACK:
                found.append(name)
    return found


def require_charts(home: LabHome) -> None:
    """Check that an update of stack lab will find its charts, before anything is started.

    Raises:
        LabError: a chart is a folder that neither exists nor is in this lab.
        StackFileError: the stack's file cannot be read.
    """
    path = stack_file.stack_path(STACK)
    if not path.exists():
        return
    stack = stack_file.read_stack_file(path)
    operators = value_at(stack.settings, "environment.operators")
    for name in operators if isinstance(operators, dict) else ():
        setting = ("environment", "operators", name, "chart")
        chart = value_at(stack.settings, ".".join(setting))
        folder = (project_folder() / str(chart)).resolve()
        if (
            not str(chart).startswith(".")
            or folder.exists()
            or folder.is_relative_to(home.charts.resolve())
        ):
            continue
        raise LabError(
            f"there is no {chart}; this lab's charts are in {home.charts}, and nothing was started",
            "write their paths into the file, or start the lab alone: berth lab up --no-update"
            f" --home {home.root}",
            place=f"{stack.shown_path}:{stack.line(setting)}",
            code=USAGE,
        )


def note_forgotten(running: Running, progress: LabProgress) -> None:
    """Say that Pulumi remembers resources of a database that is gone, if so."""
    if running.forgotten:
        progress.say(
            "the cluster's database is new, while Pulumi remembers resources of the old one: their"
            " state is refreshed first (other stacks: `pulumi refresh -s STACK`, or `make"
            " lab-clean`)"
        )


def update(home: LabHome, progress: LabProgress, *, stack: str = STACK, refresh: bool) -> None:
    """Update one of the lab's stacks to its settings.

    The stack is created where it is missing; `refresh` first compares the state with the cluster.
    """
    needed = {stack, *(_engineers() if stack == STACK else ())}
    log = home.logs / "pulumi.log"
    log.unlink(missing_ok=True)
    for name in sorted(needed - set(stacks(home))):
        if _pulumi(home, log, "stack", "init", name, "--no-select") != 0:
            raise LabError(
                f"stack {name} could not be created:\n{quoted(log.read_text())}",
                f"{log} has the rest",
            )
    for lock in locks_in(home.backend, stack):
        if lock.is_dead:
            progress.say(f"an earlier update of stack {stack} was killed: its lock was removed")
            Path(lock.place).unlink(missing_ok=True)
    options = ("--yes", "--skip-preview", "--suppress-outputs", *(["--refresh"] if refresh else []))
    with progress.step(
        f"pulumi up -s {stack} (output: {log})", f"pulumi up -s {stack} (output: {log})"
    ):
        code = _pulumi(home, log, "up", "--stack", stack, *options)
        if code and _TOO_SLOW in log.read_text(encoding="utf-8", errors="replace"):
            progress.say("pods were not ready in time on this busy machine: once more")
            code = _pulumi(home, log, "up", "--stack", stack, *options)
        if code:
            raise LabError(
                f"the update of stack {stack} did not succeed; the last lines of {log}:\n"
                f"{quoted(log.read_text(errors='replace'), _LOG_LINES)}",
                "fix the cause and run the same command again: created resources stay, the others"
                " are tried again",
            )
