"""The engine's preview: `pulumi preview`, run as a process, its events as they come."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from berth.cli.login import LOGGED_OUT_AND_NOW, is_logged_out
from berth.stacks import stack_file

Event = dict[str, Any]

_ENOUGH_SECONDS = 10
_LONGEST_ERROR = 2000
_NO_STACK = "no stack named"
_SAYS_NOTHING = {"preview failed", "update failed", "destroy failed"}

# Of a replacement and of a deletion, as the engine words them (pulumi, pkg/resource/deploy).
_PROTECTED = ("as it is currently marked for protection", "because it is protected")


class EngineError(Exception):
    """The engine failed; the text is its own, shortened."""


class NoEngineError(EngineError):
    """Pulumi is not installed; the text says what mends it."""


class UnknownStackError(EngineError):
    """The backend has no such stack; the text says what makes it."""


class RefusedSettingsError(EngineError):
    """The program refused the settings.

    Attributes:
        lines: one for each problem.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


def program() -> str:
    """Pulumi's own program.

    Raises:
        NoEngineError: it is not installed.
    """
    found = shutil.which("pulumi")
    if found is None:
        raise NoEngineError('pulumi is not on PATH; for the lab run: eval "$(.venv/bin/berth lab env)"')
    return found


def preview(stack: str, *, refresh: bool, seen: Callable[[str], None], destroy: bool = False) -> list[Event]:
    """Run the engine's preview. Nothing is changed: neither resources nor state.

    Args:
        stack: the stack.
        refresh: look first what is really there.
        seen: told of every resource that the engine looks at: its URN.
        destroy: of `pulumi destroy`, which runs no program.

    Returns:
        The engine's events, without its debugging messages.

    Raises:
        RefusedSettingsError: the program refused the settings.
        UnknownStackError: the backend has no such stack.
        EngineError: it failed.
    """
    verb, option = ("destroy", "--preview-only") if destroy else ("preview", "--show-sames")
    command = [program(), verb, "--stack", stack, "--json", option, "--non-interactive"]
    environment = os.environ | {"PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true", "PULUMI_SKIP_UPDATE_CHECK": "true"}
    with (
        # Not a pipe: nobody would read from it while events come, and a full one would stop the engine.
        tempfile.TemporaryFile("w+", encoding="utf-8") as complaints,
        _started([*command, *(["--refresh"] if refresh else [])], environment, complaints) as process,
    ):
        events = []
        for event in events_of(process):
            if metadata := (event.get("resourcePreEvent") or {}).get("metadata"):
                seen(str(metadata["urn"]))
            events.append(event)
        code = process.wait()
        complaints.seek(0)
        complaint = complaints.read()
    if code != 0 and not _only_protection(events):
        raise failure(stack, events, complaint, f"pulumi {verb} ended with {code}")
    return events


@contextlib.contextmanager
def _started(
    command: list[str], environment: dict[str, str], complaints: IO[str] | int
) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended when this one is interrupted.

    It has a session of its own, so that Ctrl-C reaches it once, from here: a second interrupt would make the engine leave
    its plugins behind.
    """
    folder: Path = stack_file.project()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_ENOUGH_SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)


def events_of(process: subprocess.Popen[str]) -> Iterator[Event]:
    """The events that an engine prints with `--json`, as they come, without its debugging messages."""
    for line in process.stdout or ():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if (event.get("diagnosticEvent") or {}).get("severity") == "debug":
            continue
        yield event


def _only_protection(events: Sequence[Event]) -> bool:
    """Whether all that the engine refuses is to delete what deletion protection keeps: its plan is whole all the same."""
    told = [event["diagnosticEvent"] for event in events if event.get("diagnosticEvent")]
    errors = {str(each["message"]).strip() for each in told if each.get("severity") == "error"} - {"preview failed"}
    return bool(errors) and all(any(words in error for words in _PROTECTED) for error in errors)


def failure(stack: str, events: Sequence[Event], complaint: str, otherwise: str) -> EngineError:
    """What went wrong, by what the engine said.

    Args:
        stack: the stack.
        events: the engine's events.
        complaint: what it wrote beside them.
        otherwise: what is said where it said nothing.
    """
    if _NO_STACK in complaint:
        return UnknownStackError(f"stack {stack} is not in Pulumi's backend yet; run: pulumi stack init {stack}")
    if not events and is_logged_out(complaint):
        return EngineError(LOGGED_OUT_AND_NOW)
    told = [diagnostic for event in events if (diagnostic := event.get("diagnosticEvent"))]
    errors = [
        str(each["message"]).strip().removeprefix("Preview failed: ")
        for each in told
        if each.get("severity") == "error"
    ]
    errors += [str(event["policyEvent"]["message"]).strip() for event in events if event.get("policyEvent")]
    for text in errors:
        first, *rest = text.splitlines()
        # How the program says it: stacks/load.py.
        if first.startswith(f"stack {stack}: ") and "in its settings; nothing is changed" in first:
            return RefusedSettingsError(rest)
    # The last line of all says only that there were others.
    telling = [text for text in dict.fromkeys(errors) if text and text not in _SAYS_NOTHING]
    said = "\n".join(telling) or complaint.strip().removeprefix("error: ") or otherwise
    return EngineError(said if len(said) <= _LONGEST_ERROR else f"{said[:_LONGEST_ERROR]}…")


def outputs(stack: str, *, secrets: bool = True) -> dict[str, Any]:
    """A stack's outputs; none where it was never brought up or they can't be had.

    Args:
        stack: the stack.
        secrets: secret ones are shown; else they are left out.
    """
    show = ["--show-secrets"] if secrets else []
    command = [program(), "stack", "output", "--json", *show, "--stack", stack, "--non-interactive"]
    environment = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    with _started(command, environment, subprocess.DEVNULL) as process:
        text, _ = process.communicate()
    if process.returncode != 0:
        return {}
    return {name: value for name, value in json.loads(text).items() if secrets or value != "[secret]"}
