"""Runs of Pulumi's engine, with their events.

A run prints an event of the engine as JSON on each line: `pulumi up --json`, and `pulumi preview
--json` with PULUMI_ENABLE_STREAMING_JSON_PREVIEW (pulumi 3.250, pkg/backend/display/display.go).
"""

import atexit
import json
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from berth.cli.pulumi.interrupts import Interrupts
from berth.cli.pulumi.program import process_options, pulumi_command
from berth.components.core.errors import BerthError
from berth.components.plan.plan import Event
from berth.stacks.program import DIGEST


@dataclass
class Outcome:
    """Outcome of a run of the engine."""

    events: list[Event] = field(default_factory=list)
    code: int = 0
    stderr: str = ""


class EngineRun:
    """Run of the engine that has begun, whose events somebody reads later.

    At the end of a `with` block a run whose events nobody has read is interrupted.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        command = pulumi_command(*arguments, "--json", "--color", "never")
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open until the run has ended
        try:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                **process_options(environment or {}),
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
    """Return a preview of a stack that has begun.

    Raises:
        BerthError: Pulumi is not installed, or cannot be run.
    """
    return EngineRun(["preview", *options, "--stack", stack], {DIGEST: "true"})
