"""The engine's update, run as a process, its events as they come; Ctrl-C is passed on to it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import IO, Literal

from berth.cli.preview.engine import Event, events_of, failure, program
from berth.stacks import stack_file

Verb = Literal["up", "destroy"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Ended:
    """How an update ended.

    Attributes:
        code: the engine's exit code.
        interrupted: it was asked to end early.
        error: what went wrong, in the engine's words; "" for nothing.
    """

    code: int
    interrupted: bool
    error: str


def update(stack: str, verb: Verb, seen: Callable[[Event], None], interrupted: Callable[[int], None]) -> Ended:
    """Run `pulumi up` or `pulumi destroy`, without a preview and without questions.

    Ctrl-C and SIGTERM do not end this: they are passed on to the engine, which ends what it is doing cleanly, and at the second one
    at once.

    Args:
        stack: the stack.
        verb: which.
        seen: told of every event of the engine, as it comes.
        interrupted: told how often it was asked to end.

    Raises:
        NoEngineError: Pulumi is not installed.
    """
    command = [program(), verb, "--stack", stack, "--json", "--yes", "--skip-preview", "--non-interactive"]
    told: list[Event] = []
    with (
        # Not a pipe: nobody would read from it while events come, and a full one would stop the engine.
        tempfile.TemporaryFile("w+", encoding="utf-8") as complaints,
        _started(command, complaints) as process,
        _passing_on(process, interrupted) as count,
    ):
        for event in events_of(process):
            told.append(event)
            seen(event)
        code = process.wait()
        complaints.seek(0)
        complaint = complaints.read()
    error = str(failure(stack, told, complaint, f"pulumi {verb} ended with {code}")) if code else ""
    return Ended(code, count() > 0, error)


@contextlib.contextmanager
def _started(command: list[str], complaints: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """The engine, in a session of its own: Ctrl-C at the terminal reaches it from here alone."""
    with subprocess.Popen(
        command,
        cwd=stack_file.project(),
        env=os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        start_new_session=True,
    ) as process:
        yield process


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[str], told: Callable[[int], None]) -> Iterator[Callable[[], int]]:
    """While this lasts, an interrupt is the engine's; how many there were."""
    times = 0

    def pass_on(_signal: int, _frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        told(times)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: times
        return
    before = {each: signal.signal(each, pass_on) for each in _SIGNALS}
    try:
        yield lambda: times
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
