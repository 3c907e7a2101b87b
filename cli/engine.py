"""Pulumi's engine, driven through its Automation API, which runs the installed `pulumi` program."""

from __future__ import annotations

import re
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

import grpc
from pulumi.automation import (
    CommandError,
    EngineEvent,
    LocalWorkspace,
    OutputValue,
    PulumiCommand,
    Stack,
    UpdateSummary,
)
from pulumi.automation import _stack as automation_stack
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import events_pb2_grpc

from berth.cli.backend import errors_of, export, failure
from berth.cli.pulumi_program import Pulumi
from berth.components.core.errors import BerthError
from berth.components.plan.plan import BERTH
from berth.stacks.files import stack_file

Verb = Literal["up", "destroy"]
Only = Literal["platform", "berths"]
"""Part of a stack: its berths, or everything else."""

_BERTHS = f"**::{BERTH}**"
"""Pattern of the URNs of all berths and of what is in them."""
_PARALLEL = 64
"""Operations at once where the state is not written in between: most of them only wait. The
engine's default is four for each core."""
_PARALLEL_DELETIONS = 128
"""Deletions at once, as many as berths of a large list: each only waits until its object is gone.
The engine deletes all RayClusters before it begins with namespaces, so that each further round of
either takes as long as the first."""

# A replacement and a deletion, in the engine's words (pulumi, pkg/resource/deploy).
_PROTECTED = ("as it is currently marked for protection", "because it is protected")


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

    def _setup_event_log(
        self,
        command: str,
        on_event: Callable[[EngineEvent], Any],
        pulumi_version: str,  # noqa: ARG002 - as above
    ) -> tuple[str, None, None, None, grpc.Server]:
        """Serve the engine's events; return the address, and the server as the base class does."""
        server = grpc.server(ThreadPoolExecutor(max_workers=1), options=_GRPC_CHANNEL_OPTIONS)
        events_pb2_grpc.add_EventsServicer_to_server(Events(on_event, command), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return f"tcp://127.0.0.1:{port}", None, None, None, server


_OF_UNCHANGED = re.compile(r'\{"sequence":\d+,"timestamp":\d+,"(\w+)":\{"metadata":\{"op":"same"')
"""Begin of an event that holds an unchanged resource whole, twice: those of an environment of 100
are 10 MB, and took half a second to parse."""


class Events(automation_stack._EventsServicer):  # noqa: SLF001 - the only way to what it reads
    """Receiver of the engine's events, without those of unchanged resources that nothing reads."""

    def __init__(self, on_event: Callable[[EngineEvent], Any], command: str) -> None:
        """Start to receive.

        Args:
            on_event: called with each event.
            command: `preview`, `up`, `destroy`, or `preview-destroy`.
        """
        super().__init__(on_event)
        # A plan has the resources that stay too: policies judge them.
        self._unread = {"resOutputsEvent"} if command.startswith("preview") else {"resourcePreEvent", "resOutputsEvent"}

    def StreamEvents(  # noqa: N802 - the service's name
        self, request_iterator: Iterable[Any], context: grpc.ServicerContext | None
    ) -> Any:
        """Take in the events of one run."""
        read = (request for request in request_iterator if not self._is_unread(request.event))
        return super().StreamEvents(read, context)  # type: ignore[no-untyped-call]  # Pulumi's own has no types

    def _is_unread(self, text: str) -> bool:
        of_unchanged = _OF_UNCHANGED.match(text)
        return of_unchanged is not None and of_unchanged[1] in self._unread


_NO_SUMMARY = UpdateSummary("update", datetime.fromtimestamp(0, tz=UTC), "", {}, {}, "succeeded")


class Inline(NamedTuple):
    """Program that this process runs: without a language host and another Python's imports.

    Attributes:
        program: the program; None for the project's, as Pulumi runs it.
        unchanged: URNs of resources in the state that the program leaves out, and the engine as
            they are.
        pulumi: the engine's command, where another thread may interrupt it.
    """

    program: Callable[[], Awaitable[None]] | None
    unchanged: Sequence[str] = ()
    pulumi: Pulumi | None = None


def _stack(
    stack: str, environment: Mapping[str, str] | None = None, inline: Inline | None = None
) -> tuple[Pulumi, Stack]:
    pulumi = (inline.pulumi if inline else None) or Pulumi(version=True)
    command = cast("PulumiCommand", pulumi)  # it does what the Automation API asks of one
    workspace = _Workspace(work_dir=str(stack_file.project()), pulumi_command=command, env_vars=dict(environment or {}))
    # `Stack.select` returns the base class.
    return pulumi, _Stack(stack, workspace, automation_stack.StackInitMode.SELECT)


def preview(
    stack: str,
    *,
    refresh: bool,
    report: Callable[[str], None],
    destroy: bool = False,
    inline: Inline | None = None,
    backend: str | None = None,
) -> list[EngineEvent]:
    """Return the events of the engine's preview, which changes neither resources nor state.

    Args:
        stack: the stack.
        refresh: compare the state with what there is first.
        report: called with the URN of each resource that the engine looks at.
        destroy: preview `pulumi destroy`, which runs no program.
        inline: program of this process in place of the project's.
        backend: URL of the state backend; None for that of the project or the login.

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

    pulumi, engine = _stack(stack, {"PULUMI_BACKEND_URL": backend} if backend else None, inline)
    program, exclude = (inline.program, list(inline.unchanged)) if inline else (None, [])
    try:
        with warnings.catch_warnings(record=True) as dropped:
            warnings.simplefilter("always")
            if destroy:
                engine.preview_destroy(on_event=see, refresh=refresh)
            else:
                engine.preview(on_event=see, refresh=refresh, program=program, exclude=exclude)
    except CommandError:
        if not _only_protection(events):
            raise failure(stack, events, pulumi.stderr) from None
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
    parallel = _PARALLEL_DELETIONS if verb == "destroy" else None if checkpoints else _PARALLEL
    target, exclude = [_BERTHS] if only == "berths" else None, [_BERTHS] if only == "platform" else []
    error = None
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
        except CommandError:
            error = str(failure(stack, events, pulumi.stderr))
    recorded = checkpoints or error is None or _saved_since(stack, began)
    return UpdateResult(pulumi.interrupts > 0, error, terminated=pulumi.terminated, recorded=recorded)


def _saved_since(stack: str, began: datetime) -> bool:
    """Return whether the state was written after a time."""
    try:
        exported = export(Pulumi(version=False), stack, secrets=False)
        return datetime.fromisoformat(exported["deployment"]["manifest"]["time"]) >= began
    except (BerthError, KeyError, TypeError, ValueError):
        return False


def _only_protection(events: Sequence[EngineEvent]) -> bool:
    """Return whether deletion protection alone fails a plan, which is complete then."""
    errors = errors_of(events)
    return bool(errors) and all(any(words in error for words in _PROTECTED) for error in errors)
