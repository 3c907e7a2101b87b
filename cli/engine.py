"""Pulumi's engine, driven through its Automation API, which runs the installed `pulumi` program."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from pulumi.automation import (
    CommandError,
    EngineEvent,
    LocalWorkspace,
    OutputValue,
    Stack,
    StackNotFoundError,
    UpdateSummary,
)
from pulumi.automation import _stack as automation_stack

from berth.cli.console import ProblemsError
from berth.cli.pulumi_program import Pulumi
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

_LONGEST_ERROR = 2000
_SUMS_UP = {"preview failed", "update failed", "destroy failed"}
# The engine repeats the error that ends an inline program and that the program has reported
# (pulumi, pkg/resource/deploy/program_source.go).
_REPEATS = "an unhandled error occurred: "

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
        recorded: the state has everything that was done.
    """

    interrupted: bool
    error: str | None = None
    terminated: bool = False
    recorded: bool = True


class _Workspace(LocalWorkspace):
    """The clone, with the stack that the user has selected left selected."""

    def select_stack(self, stack_name: str) -> None:
        """Select nothing: every command names its stack."""


class _Stack(Stack):
    """A stack whose update asks neither for history nor for outputs, which the program knows."""

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002, FBT001, FBT002 - the API's signature
        """Return a summary without content."""
        return _NO_SUMMARY

    def outputs(self) -> dict[str, OutputValue]:
        """Return nothing."""
        return {}


_NO_SUMMARY = UpdateSummary("update", datetime.fromtimestamp(0, tz=UTC), "", {}, {}, "succeeded")


class Inline(NamedTuple):
    """Program that this process runs: without a language host and another Python's imports.

    Attributes:
        program: the program.
        unchanged: URNs of resources in the state that the program leaves out, and the engine as
            they are.
        pulumi: the engine's command, where another thread may interrupt it.
    """

    program: Callable[[], Awaitable[None]]
    unchanged: Sequence[str] = ()
    pulumi: Pulumi | None = None


def _stack(
    stack: str, environment: Mapping[str, str] | None = None, inline: Inline | None = None
) -> tuple[Pulumi, Stack]:
    pulumi = (inline.pulumi if inline else None) or Pulumi(version=True)
    workspace = _Workspace(work_dir=str(stack_file.project()), pulumi_command=pulumi, env_vars=dict(environment or {}))
    # `Stack.select` returns the base class.
    return pulumi, _Stack(stack, workspace, automation_stack.StackInitMode.SELECT)


def preview(
    stack: str,
    *,
    refresh: bool,
    report: Callable[[str], None],
    destroy: bool = False,
    inline: Inline | None = None,
) -> list[EngineEvent]:
    """Return the events of the engine's preview, which changes neither resources nor state.

    Args:
        stack: the stack.
        refresh: compare the state with what there is first.
        report: called with the URN of each resource that the engine looks at.
        destroy: preview `pulumi destroy`, which runs no program.
        inline: program of this process in place of the project's.

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

    pulumi, engine = _stack(stack, inline=inline)
    program, exclude = (inline.program, list(inline.unchanged)) if inline else (None, [])
    try:
        with warnings.catch_warnings(record=True) as dropped:
            warnings.simplefilter("always")
            if destroy:
                engine.preview_destroy(on_event=see, refresh=refresh)
            else:
                engine.preview(on_event=see, refresh=refresh, program=program, exclude=exclude)
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
    inline: Inline | None = None,
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
        inline: program of this process in place of the project's.

    Raises:
        BerthError: Pulumi is not installed.
    """
    events: list[EngineEvent] = []
    began = datetime.now(tz=UTC)

    def collect(event: EngineEvent) -> None:
        events.append(event)
        see(event)

    # https://www.pulumi.com/docs/iac/cli/environment-variables/ (backend/snapshot.go, v3.250.0)
    pulumi, engine = _stack(stack, None if checkpoints else {"PULUMI_SKIP_CHECKPOINTS": "true"}, inline)
    parallel = None if checkpoints else _PARALLEL
    target, exclude = [_BERTHS] if only == "berths" else None, [_BERTHS] if only == "platform" else []
    failure = None
    with pulumi.pass_signals_on(interrupted):
        try:
            if verb == "destroy":
                engine.destroy(on_event=collect, parallel=parallel, target=target, refresh=refresh)
            else:
                engine.up(
                    on_event=collect,
                    show_secrets=False,
                    parallel=parallel,
                    target=target,
                    exclude=[*exclude, *(inline.unchanged if inline else ())],
                    refresh=refresh,
                    program=inline.program if inline else None,
                )
        except CommandError as error:
            failure = str(_failure(stack, events, pulumi.stderr, error))
    recorded = checkpoints or failure is None or _saved_since(stack, began)
    return UpdateResult(pulumi.interrupts > 0, failure, terminated=pulumi.terminated, recorded=recorded)


def _saved_since(stack: str, began: datetime) -> bool:
    """Return whether the state was written after a time."""
    try:
        exported = export(Pulumi(version=False), stack)
        return datetime.fromisoformat(exported["deployment"]["manifest"]["time"]) >= began
    except (BerthError, KeyError, TypeError, ValueError):
        return False


def outputs(stack: str, *, secrets: bool = True) -> dict[str, Any]:
    """Return a stack's outputs, secret ones in clear text or not at all.

    Raises:
        UnknownStackError: the backend has no such stack.
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    pulumi = Pulumi(version=False)
    # One command in place of the Automation API's two.
    command = ["stack", "output", "--json", *(["--show-secrets"] if secrets else []), "--stack", stack]
    try:
        found = json.loads(pulumi.run(command, str(stack_file.project()), {}).stdout)
        return {name: value for name, value in found.items() if secrets or value != "[secret]"}
    except CommandError as error:
        raise _failure(stack, (), pulumi.stderr, error) from None


def selected() -> str:
    """Return the stack that `pulumi stack select` chose; "" for none, or if Pulumi does not say.

    Raises:
        BerthError: Pulumi is not installed.
    """
    try:
        return str(Pulumi(version=False).run(["stack", "--show-name"], str(stack_file.project()), {}).stdout).strip()
    except CommandError:
        return ""


def stacks() -> dict[str, int]:
    """Return the project's stacks in the backend, with the number of resources of each.

    Raises:
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    pulumi = Pulumi(version=False)
    try:
        found = json.loads(pulumi.run(["stack", "ls", "--json"], str(stack_file.project()), {}).stdout)
    except CommandError as error:
        raise _failure("", (), pulumi.stderr, error) from None
    return {str(stack["name"]).rsplit("/", 1)[-1]: int(stack.get("resourceCount") or 0) for stack in found}


def export(pulumi: Pulumi, stack: str) -> dict[str, Any]:
    """Return the state of a stack, secrets in clear text.

    Raises:
        BerthError: Pulumi fails.
    """
    try:
        command = ["stack", "export", "--show-secrets", "--stack", stack]
        return dict(json.loads(pulumi.run(command, str(stack_file.project()), {}).stdout))
    except CommandError as error:
        raise _failure(stack, (), pulumi.stderr, error) from None


def init(pulumi: Pulumi, stack: str) -> None:
    """Create a stack in the backend, with the secrets provider that its file names.

    Raises:
        BerthError: Pulumi fails.
    """
    provider = stack_file.secrets_provider(stack)
    command = ["stack", "init", stack, "--no-select", *(["--secrets-provider", provider] if provider else [])]
    try:
        pulumi.run(command, str(stack_file.project()), {})
    except CommandError as error:
        raise _failure(stack, (), pulumi.stderr, error) from None


def is_logged_out(stderr: str) -> bool:
    """Return whether Pulumi failed because it is not logged in."""
    return "PULUMI_ACCESS_TOKEN" in stderr or "not logged in" in stderr.lower() or "pulumi login" in stderr


def sums_up(error: str) -> bool:
    """Return whether an error of the engine only says that there were others."""
    return error in _SUMS_UP or error.startswith(_REPEATS)


def errors_of(events: Sequence[EngineEvent]) -> list[str]:
    """Return the errors that the engine reported, each once, without those that only sum up."""
    diagnostics = [event.diagnostic_event for event in events if event.diagnostic_event]
    errors = [
        found.message.strip().removeprefix("Preview failed: ") for found in diagnostics if found.severity == "error"
    ]
    errors += [event.policy_event.message.strip() for event in events if event.policy_event]
    return [error for error in dict.fromkeys(errors) if error and not sums_up(error)]


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
