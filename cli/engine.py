"""Pulumi's engine, driven through its Automation API, which runs the installed `pulumi` program."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from pulumi.automation import (
    CommandError,
    CommandResult,
    EngineEvent,
    LocalWorkspace,
    OnOutput,
    PulumiCommand,
    Stack,
    StackNotFoundError,
)
from pulumi.automation import _stack as automation_stack
from pulumi.automation.errors import create_command_error

from berth.cli.console import ProblemsError
from berth.components.core.errors import BadInputError, BerthError
from berth.components.plan.plan import BERTH
from berth.stacks import stack_file

Verb = Literal["up", "destroy"]
Only = Literal["platform", "berths"]
"""Part of a stack: its berths, or everything else."""

_BERTHS = f"**::{BERTH}**"
"""Pattern of the URNs of all berths and of what is in them."""
_PARALLEL = 64
"""Operations at once where the state is not written in between: most of them only wait. The
engine's default is four for each core."""

LOGGED_OUT = "Pulumi is not logged in to a state backend"
LOG_IN = "pulumi login gs://YOUR-STATE-BUCKET"

_END_SECONDS = 10
_LONGEST_ERROR = 2000
SUMS_UP = {"preview failed", "update failed", "destroy failed"}
"""Errors that only say that there were others."""

# Words of Go's network library in errors of the backend, of plugins and of downloads.
_NO_CONNECTION = re.compile(r"dial tcp|no such host|connection refused|i/o timeout|network is unreachable")

# A replacement and a deletion, in the engine's words (pulumi, pkg/resource/deploy).
_PROTECTED = ("as it is currently marked for protection", "because it is protected")


class UnknownStackError(BadInputError):
    """The state backend has no such stack."""


@dataclass(frozen=True)
class UpdateResult:
    """Result of an update.

    Attributes:
        interrupted: Ctrl-C or SIGTERM came while it ran.
        terminated: the first of them was SIGTERM.
        error: error in the engine's words; None for success.
        outputs: the stack's outputs after `up`, without secrets.
        recorded: the state has everything that was done.
    """

    interrupted: bool
    error: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    terminated: bool = False
    recorded: bool = True


class Pulumi(PulumiCommand):
    """The `pulumi` program, run in a session of its own.

    Ctrl-C at the terminal therefore reaches the engine once, from here: a second interrupt makes
    the engine abandon its plugins. The Automation API's own command neither passes SIGTERM on nor
    ends the engine when this process ends.

    Attributes:
        stderr: what the last command wrote to stderr.
        interrupts: number of interrupts that `pass_signals_on` has seen.
        terminated: whether the first of them was SIGTERM.
    """

    def __init__(self, *, version: bool) -> None:
        """Find the program.

        Args:
            version: ask for its version, which a command that sends events needs.

        Raises:
            BerthError: it is not installed, or does not run.
        """
        if shutil.which("pulumi") is None:
            raise BerthError('pulumi is not on PATH; for the lab run: eval "$(.venv/bin/berth lab env)"')
        self.command, self.stderr, self.interrupts, self.terminated = "pulumi", "", 0, False
        if version:
            try:
                super().__init__(skip_version_check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise BerthError(f"pulumi cannot be run: {error}") from None
        self._process: subprocess.Popen[str] | None = None

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,  # noqa: ARG002 - the Automation API's signature
        on_error: OnOutput | None = None,  # noqa: ARG002
    ) -> CommandResult:
        """Run a command; end it when this call is left by an exception.

        Raises:
            CommandError: it failed.
        """
        with subprocess.Popen(
            [self.command, *args, "--non-interactive"],
            cwd=cwd,
            env={**os.environ, **additional_env, "PULUMI_SKIP_UPDATE_CHECK": "true"},
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
        result = CommandResult(stdout, self.stderr, self._process.returncode)
        if result.code:
            raise create_command_error(result)
        return result

    @contextlib.contextmanager
    def pass_signals_on(self, report: Callable[[int], None]) -> Iterator[None]:
        """Pass Ctrl-C and SIGTERM on to the running command instead of ending this process.

        Args:
            report: called with the number of interrupts so far.
        """

        def interrupt(number: int, _frame: FrameType | None) -> None:
            self.terminated = self.terminated or (number == signal.SIGTERM and not self.interrupts)
            self.interrupts += 1
            if self._process and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
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


class _Workspace(LocalWorkspace):
    """The clone, with the stack that the user has selected left selected."""

    def select_stack(self, stack_name: str) -> None:
        """Select nothing: every command names its stack."""


def _stack(stack: str, environment: Mapping[str, str] | None = None) -> tuple[Pulumi, Stack]:
    pulumi = Pulumi(version=True)
    workspace = _Workspace(work_dir=str(stack_file.project()), pulumi_command=pulumi, env_vars=dict(environment or {}))
    return pulumi, Stack.select(stack, workspace)


def preview(stack: str, *, refresh: bool, report: Callable[[str], None], destroy: bool = False) -> list[EngineEvent]:
    """Return the events of the engine's preview, which changes neither resources nor state.

    Args:
        stack: the stack.
        refresh: compare the state with what there is first.
        report: called with the URN of each resource that the engine looks at.
        destroy: preview `pulumi destroy`, which runs no program.

    Raises:
        ProblemsError: the program refused the settings.
        UnknownStackError: the backend has no such stack.
        BerthError: the engine failed, or Pulumi is not installed.
    """
    events: list[EngineEvent] = []

    def see(event: EngineEvent) -> None:
        if event.resource_pre_event:
            report(event.resource_pre_event.metadata.urn)
        events.append(event)

    pulumi, engine = _stack(stack)
    try:
        with warnings.catch_warnings(record=True) as dropped:
            warnings.simplefilter("always")
            (engine.preview_destroy if destroy else engine.preview)(on_event=see, refresh=refresh)
    except CommandError as error:
        if not _only_protection(events):
            raise _failure(stack, events, pulumi.stderr, error) from None
    # The Automation API drops an event that it does not know, such as a new kind of operation.
    if any(warning.filename == automation_stack.__file__ for warning in dropped):
        raise BerthError("the engine reported something that the installed pulumi package does not know; update it")
    return events


def update(
    stack: str,
    verb: Verb,
    see: Callable[[EngineEvent], None],
    interrupted: Callable[[int], None],
    *,
    only: Only | None = None,
    checkpoints: bool = True,
    refresh: bool = False,
) -> UpdateResult:
    """Run `pulumi up` or `pulumi destroy` without preview and questions.

    The first Ctrl-C or SIGTERM cancels the update, and the engine saves its state and releases its
    lock. The second one ends the engine at once.

    Args:
        stack: the stack.
        verb: `up` or `destroy`.
        see: called with each event.
        interrupted: called with the number of interrupts so far.
        only: part of the stack that is changed; None for all of it.
        checkpoints: write the state at every step; else once, at the end of the update.
        refresh: compare the state with what there is first.

    Raises:
        BerthError: Pulumi is not installed.
    """
    events: list[EngineEvent] = []
    began = datetime.now(tz=UTC)

    def collect(event: EngineEvent) -> None:
        events.append(event)
        see(event)

    # https://www.pulumi.com/docs/iac/cli/environment-variables/ (backend/snapshot.go, v3.250.0)
    pulumi, engine = _stack(stack, None if checkpoints else {"PULUMI_SKIP_CHECKPOINTS": "true"})
    parallel = None if checkpoints else _PARALLEL
    target, exclude = [_BERTHS] if only == "berths" else None, [_BERTHS] if only == "platform" else None
    failure, shown = None, {}
    with pulumi.pass_signals_on(interrupted):
        try:
            if verb == "destroy":
                engine.destroy(on_event=collect, parallel=parallel, target=target, refresh=refresh)
            else:
                outputs = engine.up(
                    on_event=collect,
                    show_secrets=False,
                    parallel=parallel,
                    target=target,
                    exclude=exclude,
                    refresh=refresh,
                ).outputs
                shown = {name: output.value for name, output in outputs.items() if not output.secret}
        except CommandError as error:
            failure = str(_failure(stack, events, pulumi.stderr, error))
    recorded = checkpoints or failure is None or _saved_since(stack, began)
    return UpdateResult(pulumi.interrupts > 0, failure, shown, terminated=pulumi.terminated, recorded=recorded)


def _saved_since(stack: str, began: datetime) -> bool:
    """Return whether the state was written after a time."""
    try:
        command = ["stack", "export", "--stack", stack]
        exported = json.loads(Pulumi(version=False).run(command, str(stack_file.project()), {}).stdout)
        return datetime.fromisoformat(exported["deployment"]["manifest"]["time"]) >= began
    except (BerthError, CommandError, KeyError, TypeError, ValueError):
        return False


def outputs(stack: str) -> dict[str, Any]:
    """Return a stack's outputs, secret ones in clear text.

    Raises:
        UnknownStackError: the backend has no such stack.
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    pulumi = Pulumi(version=False)
    # One command in place of the Automation API's two.
    command = ["stack", "output", "--json", "--show-secrets", "--stack", stack]
    try:
        return dict(json.loads(pulumi.run(command, str(stack_file.project()), {}).stdout))
    except CommandError as error:
        raise _failure(stack, (), pulumi.stderr, error) from None


def is_logged_out(stderr: str) -> bool:
    """Return whether Pulumi failed because it is not logged in."""
    return "PULUMI_ACCESS_TOKEN" in stderr or "not logged in" in stderr.lower() or "pulumi login" in stderr


def errors_of(events: Sequence[EngineEvent]) -> list[str]:
    """Return the errors that the engine reported, each once, without those that only sum up."""
    diagnostics = [event.diagnostic_event for event in events if event.diagnostic_event]
    errors = [
        found.message.strip().removeprefix("Preview failed: ") for found in diagnostics if found.severity == "error"
    ]
    errors += [event.policy_event.message.strip() for event in events if event.policy_event]
    return [error for error in dict.fromkeys(errors) if error and error not in SUMS_UP]


def _only_protection(events: Sequence[EngineEvent]) -> bool:
    """Return whether deletion protection alone fails a plan, which is complete then."""
    errors = errors_of(events)
    return bool(errors) and all(any(words in error for words in _PROTECTED) for error in errors)


def _failure(stack: str, events: Sequence[EngineEvent], stderr: str, error: CommandError) -> BerthError:
    """Return the error for a failed command, in the engine's words."""
    if isinstance(error, StackNotFoundError):
        return UnknownStackError(f"stack {stack} is not in Pulumi's backend yet; run: pulumi stack init {stack}")
    if not events and is_logged_out(stderr):
        return BerthError(f'{LOGGED_OUT}; run: {LOG_IN}, or for the lab: eval "$(.venv/bin/berth lab env)"')
    errors = errors_of(events)
    for text in errors:
        first, *rest = text.splitlines()
        # The program's words: stacks/load.py.
        if first.startswith(f"stack {stack}: ") and "in its settings; nothing is changed" in first:
            return ProblemsError(stack, rest)
    if errors and all(map(_NO_CONNECTION.search, errors)):
        text = "\n".join(errors)[:_LONGEST_ERROR]
        return BerthError(f"Pulumi needs a connection that failed: {text}", "check the network, and run this again")
    if not errors and (lost := next(filter(_NO_CONNECTION.search, stderr.splitlines()), "")):
        if "plugin" in stderr:
            return BerthError(
                f"Pulumi cannot download a plugin: {stderr.strip().removeprefix('error: ')[:_LONGEST_ERROR]}",
                "check the network; pulumi plugin ls lists the installed plugins",
            )
        return BerthError(
            f"Pulumi cannot reach its state backend: {lost.strip().removeprefix('error: ')[:_LONGEST_ERROR]}",
            "check the network; pulumi whoami --verbose names the backend",
        )
    text = "\n".join(errors) or stderr.strip().removeprefix("error: ") or "pulumi failed without a reason"
    return BerthError(text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…")
