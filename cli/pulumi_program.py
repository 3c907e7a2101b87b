"""The installed `pulumi` program: a command of it, interrupted and ended as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from berth.components.core.errors import BerthError
from berth.stacks.files import stack_file

if TYPE_CHECKING:
    from pulumi.automation import CommandResult, OnOutput

_END_SECONDS = 10

_GARBAGE_PERCENT = "400"
"""Garbage that Go lets grow before it collects, in percent of what is in use. With its default of
100, the engine spends a fifth of its time on that for a state of 100 berths."""


class FailedCommandError(Exception):
    """Failure of a command, with what it wrote to stderr."""

    def __init__(self, stderr: str) -> None:
        super().__init__(stderr)
        self.stderr = stderr


class Pulumi:
    """The `pulumi` program, run in a session of its own.

    Ctrl-C at the terminal therefore reaches the engine once, from here: a second interrupt makes
    the engine abandon its plugins. The Automation API's own command neither passes SIGTERM on nor
    ends the engine when this process ends. This one takes its place, and does without the API's
    import where only the state backend is asked.

    Attributes:
        stderr: what the last command wrote to stderr.
        interrupts: number of interrupts that `pass_signals_on` has seen.
        terminated: whether the first of them was SIGTERM.
    """

    _versions: ClassVar[dict[str, Any]] = {}
    """Versions of programs by path, which a process asks for once."""

    def __init__(self, *, version: bool) -> None:
        """Find the program.

        Args:
            version: ask for its version, which a command that sends events needs.

        Raises:
            BerthError: it is not installed, or does not run.
        """
        path = shutil.which("pulumi")
        if path is None:
            raise BerthError('pulumi is not on PATH; for the lab run: eval "$(.venv/bin/berth lab env)"')
        self.command, self.stderr, self.interrupts, self.terminated = "pulumi", "", 0, False
        if version and path not in self._versions:
            from pulumi.automation import PulumiCommand  # noqa: PLC0415 - takes half a second

            try:
                self._versions[path] = PulumiCommand(skip_version_check=True).version
            except (OSError, subprocess.CalledProcessError) as error:
                raise BerthError(f"pulumi cannot be run: {error}") from None
        self.version = self._versions.get(path)
        self._process: subprocess.Popen[str] | None = None

    def ask(self, args: list[str]) -> str:
        """Return what a command prints that needs neither the engine nor a program.

        Raises:
            FailedCommandError: it failed.
        """
        stdout, code = self._ran(args, str(stack_file.project()), {})
        if code:
            raise FailedCommandError(self.stderr)
        return stdout

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,  # noqa: ARG002 - the Automation API's signature
        on_error: OnOutput | None = None,  # noqa: ARG002
    ) -> CommandResult:
        """Run a command for the Automation API.

        Raises:
            CommandError: it failed.
        """
        from pulumi.automation import CommandResult  # noqa: PLC0415 - as above
        from pulumi.automation.errors import create_command_error  # noqa: PLC0415 - as above

        stdout, code = self._ran(args, cwd, additional_env)
        result = CommandResult(stdout, self.stderr, code)
        if code:
            raise create_command_error(result)
        return result

    def _ran(self, args: list[str], cwd: str, additional_env: Mapping[str, str]) -> tuple[str, int]:
        """Return output and exit code of a command, which ends when this call is left."""
        with subprocess.Popen(
            [self.command, *args, "--non-interactive"],
            cwd=cwd,
            env={"GOGC": _GARBAGE_PERCENT, **os.environ, **additional_env, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as self._process:
            try:
                if self.interrupts:
                    self._process.send_signal(signal.SIGINT)
                stdout, self.stderr = self._process.communicate()
            finally:
                if self.interrupts or self._process.poll() is None:
                    _end(self._process)
        return stdout, self._process.returncode

    def interrupt(self) -> None:
        """Cancel the running command, and any later one; a second interrupt ends it at once."""
        self.interrupts += 1
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Kill the running command, and any later one, which may only read."""
        self.interrupts += 1
        if self._process:
            self._process.kill()

    @contextlib.contextmanager
    def pass_signals_on(self, report: Callable[[int], None]) -> Iterator[None]:
        """Pass Ctrl-C and SIGTERM on to the running command instead of ending this process.

        Args:
            report: called with the number of interrupts so far.
        """

        def interrupt(number: int, _frame: FrameType | None) -> None:
            self.terminated = self.terminated or (number == signal.SIGTERM and not self.interrupts)
            self.interrupt()
            report(self.interrupts)

        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals
            return
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt a process that still runs; kill its session when that takes too long."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    _end_session(process.pid)


def _end_session(leader: int) -> None:
    """End what an interrupted engine leaves behind: a language host that it had just started.

    Each plugin has a process group of its own, so that only the session finds all of them.
    """
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(path.name)) == leader:
                os.kill(int(path.name), signal.SIGKILL)
