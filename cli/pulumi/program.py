"""Commands of the installed `pulumi` program: questions, and runs of the engine with events.

A run prints an event of the engine as JSON on each line: `pulumi up --json`, and `pulumi preview
--json` with PULUMI_ENABLE_STREAMING_JSON_PREVIEW (pulumi 3.250, pkg/backend/display/display.go).
"""

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

from berth.cli.shell import lab_here
from berth.cli.shell.signals import INTERRUPTED, TERMINATED
from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder
from berth.components.plan.plan import Event
from berth.stacks.program import DIGEST, NO_DEBUG

_STREAMS_EVENTS = {
    "PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
}


@dataclass
class Outcome:
    """Outcome of a run of the engine."""

    events: list[Event] = field(default_factory=list)
    code: int = 0
    stderr: str = ""


class Interrupts:
    """Ctrl-C and SIGTERM while Pulumi runs: the engine ends in good order, and then the command.

    The terminal itself sends Ctrl-C to Pulumi, which is in berth's own process group. What reaches
    only berth is passed on: SIGTERM, and SIGINT without a terminal. The first one cancels a run,
    and the second one ends it at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.code = INTERRUPTED
        self.running: set[subprocess.Popen[str]] = set()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for `nohup` and `&`
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def end_if_interrupted(self) -> None:
        """End the command, if there was an interrupt.

        Raises:
            KeyboardInterrupt: it was Ctrl-C.
            SystemExit: it was SIGTERM.
        """
        if self.count:
            raise KeyboardInterrupt if self.code == INTERRUPTED else SystemExit(self.code)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM and not self.count:
            self.code = TERMINATED
        self.count += 1
        if number == signal.SIGTERM or not _in_foreground():
            for process in tuple(self.running):
                process.send_signal(signal.SIGINT)


def _in_foreground() -> bool:
    """Return whether the terminal sends Ctrl-C to this process group, with Pulumi in it."""
    with suppress(OSError), Path("/dev/tty").open("rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def run_pulumi(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that needs neither the engine nor a program, whatever its exit code.

    Raises:
        BerthError: Pulumi is not installed, or cannot be run.
    """
    command, options = _call(arguments)
    try:
        return subprocess.run(command, capture_output=True, check=False, **options)
    except OSError as error:
        raise BerthError(f"pulumi cannot be run: {error}", "install Pulumi again") from None


class EngineRun:
    """Run of the engine that has begun, whose events somebody reads later.

    At the end of a `with` block a run whose events nobody has read is interrupted.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        command, options = _call([*arguments, "--json", "--color", "never"], environment)
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open until the run has ended
        try:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=self._stderr, **options
            )
        except OSError as error:
            raise BerthError(f"pulumi cannot be run: {error}", "install Pulumi again") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Interrupt a run that goes on; the process waits for its end after all else."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)
            atexit.register(self._process.communicate)

    def outcome(self, see: Callable[[Event], None], interrupts: Interrupts) -> Outcome:
        """Read the events to the end of the run; return them, whatever comes of it."""
        outcome = Outcome()
        with self._process, self._stderr:
            interrupts.running.add(self._process)
            if interrupts.count:
                self._process.send_signal(signal.SIGINT)
            for line in self._process.stdout or ():
                if line.startswith("{"):  # else it is a text of Pulumi's for people
                    outcome.events.append(json.loads(line))
                    see(outcome.events[-1])
            outcome.code = self._process.wait()
            interrupts.running.discard(self._process)
            self._stderr.seek(0)
            outcome.stderr = self._stderr.read()
        return outcome


def begun_preview(stack: str, *options: str) -> EngineRun:
    """Return a preview of a stack that has begun."""
    return EngineRun(["preview", *options, "--stack", stack], {DIGEST: "true"})


def _call(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """Return the words of a command, and the options of its process."""
    lab_here.require_up()
    path = shutil.which("pulumi")
    if path is None:
        raise BerthError(
            "pulumi is not on PATH",
            "install Pulumi, or bring the lab up, which has its own: make lab",
        )
    options = {
        "cwd": project_folder(),
        "env": {**os.environ, **_STREAMS_EVENTS, NO_DEBUG: "true", **(environment or {})},
        "stdin": subprocess.DEVNULL,
        "text": True,
    }
    return [path, *arguments, "--non-interactive"], options
