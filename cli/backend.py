"""State backend of a project, asked through the installed `pulumi` program.

Commands that only read a stack do without Pulumi's Automation API, whose import takes longer than
the question.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

from berth.cli import state_file
from berth.cli.pulumi_program import FailedCommandError, Pulumi
from berth.cli.shell.console import ProblemsError
from berth.components.core.errors import BadInputError, BerthError
from berth.components.plan.pending import remedy_of
from berth.stacks.files import stack_file

if TYPE_CHECKING:
    from pulumi.automation import EngineEvent

LOGGED_OUT = "Pulumi is not logged in to a state backend"
LOG_IN = "pulumi login gs://YOUR-STATE-BUCKET"

_LONGEST_ERROR = 2000
_SUMS_UP = {"preview failed", "update failed", "destroy failed"}
# The engine repeats the error that ends an inline program and that the program has reported
# (pulumi, pkg/resource/deploy/program_source.go).
_REPEATS = "an unhandled error occurred: "

# pulumi, pkg/cmd/pulumi/stack/stack.go
_UNKNOWN = re.compile(r"no stack named .*found")
# Words of Go's network library in errors of the backend, of plugins and of downloads.
_NO_CONNECTION = re.compile(r"dial tcp|no such host|connection refused|i/o timeout|network is unreachable")


class UnknownStackError(BadInputError):
    """The state backend has no such stack."""


def is_remote() -> bool:
    """Return whether the state is somewhere else than on this machine; False where nothing says.

    Pulumi looks in the same places, in this order (pulumi, pkg/workspace/creds.go and
    sdk/go/common/workspace/creds.go).
    """
    url = _url()
    return "://" in url and not url.startswith("file://")


def is_service() -> bool:
    """Return whether the state is in Pulumi Cloud, which has policies and secrets of its own.

    Its URL is one of the web's (pulumi, pkg/backend/diy/backend.go, IsDIYBackendURL).
    """
    return _url().startswith(("https://", "http://"))


def _url() -> str:
    return os.environ.get("PULUMI_BACKEND_URL") or _of_project() or _of_login()


def _of_project() -> str:
    try:
        return str(stack_file.project_settings()["backend"]["url"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _of_login() -> str:
    home = os.environ.get("PULUMI_CREDENTIALS_PATH") or os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi"
    try:
        return str(json.loads(Path(home, "credentials.json").read_text(encoding="utf-8"))["current"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def outputs(stack: str, pulumi: Pulumi | None = None, *, secrets: bool = True) -> dict[str, Any]:
    """Return a stack's outputs, secret ones in clear text or not at all.

    Args:
        stack: the stack.
        pulumi: the program, where another thread may end it.
        secrets: with secret ones.

    Raises:
        UnknownStackError: the backend has no such stack.
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    # One command in place of the Automation API's two.
    command = ["stack", "output", "--json", *(["--show-secrets"] if secrets else []), "--stack", stack]
    try:
        found = json.loads((pulumi or Pulumi(version=False)).ask(command))
        return {name: value for name, value in found.items() if secrets or value != "[secret]"}
    except FailedCommandError as error:
        raise failure(stack, (), error.stderr) from None


def selected() -> str:
    """Return the stack that `pulumi stack select` chose; "" for none, or if Pulumi does not say.

    Raises:
        BerthError: Pulumi is not installed.
    """
    try:
        return Pulumi(version=False).ask(["stack", "--show-name"]).strip()
    except FailedCommandError:
        return ""


def stacks() -> dict[str, int]:
    """Return the project's stacks in the backend, with the number of resources of each.

    Raises:
        BerthError: Pulumi is not installed, not logged in, or fails.
    """
    try:
        found = json.loads(Pulumi(version=False).ask(["stack", "ls", "--json"]))
    except FailedCommandError as error:
        raise failure("", (), error.stderr) from None
    return {str(stack["name"]).rsplit("/", 1)[-1]: int(stack.get("resourceCount") or 0) for stack in found}


def export(pulumi: Pulumi, stack: str, *, secrets: bool = True) -> dict[str, Any]:
    """Return the state of a stack, secrets in clear text or encrypted.

    With encrypted secrets, a state in a folder of this machine is read from its file.

    Raises:
        BerthError: Pulumi fails.
    """
    if not secrets and (state := state_in_folder(stack)):
        return state
    try:
        command = ["stack", "export", *(["--show-secrets"] if secrets else []), "--stack", stack]
        return dict(json.loads(pulumi.ask(command)))
    except FailedCommandError as error:
        raise failure(stack, (), error.stderr) from None


class Asked:
    """Questions to the backend about a stack: a context, whose end is the end of all questions.

    The outputs are asked for from the beginning. That takes as long as the imports of a command,
    which therefore begins with it.

    Attributes:
        stack: the stack.
    """

    def __init__(self, stack: str) -> None:
        """Start to ask for a stack's outputs."""
        self.stack, self._programs = stack, list[Pulumi]()
        self._threads = ThreadPoolExecutor(thread_name_prefix="backend")
        self._outputs = self._asked(outputs)

    def __enter__(self) -> Self:
        """Give the questions."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what is still asked."""
        for program in self._programs:
            program.end()
        self._threads.shutdown()

    def _asked(self, question: Callable[[str, Pulumi | None], dict[str, Any]]) -> Future[dict[str, Any]]:
        pulumi = None
        with contextlib.suppress(BerthError):  # the question itself says that Pulumi is missing
            pulumi = Pulumi(version=False)
            self._programs.append(pulumi)
        return self._threads.submit(question, self.stack, pulumi)

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs in clear text.

        The version of Pulumi, which a preview asks for next, is asked for meanwhile.

        Raises:
            UnknownStackError: the backend has no such stack.
            BerthError: Pulumi is not installed, not logged in, or fails.
        """
        self._threads.submit(Pulumi, version=True).result()
        return self._outputs.result()

    def state_and_outputs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the stack's state, with encrypted secrets, and its outputs in clear text.

        Two commands at the same time take half as long as one for a state in clear text.

        Raises:
            UnknownStackError: the backend has no such stack.
            BerthError: Pulumi is not installed, not logged in, or fails.
        """
        exported = self._asked(_encrypted)
        found = self.outputs()
        return exported.result(), found


def _encrypted(stack: str, pulumi: Pulumi | None) -> dict[str, Any]:
    return export(pulumi or Pulumi(version=False), stack, secrets=False)


def state_in_folder(stack: str) -> dict[str, Any] | None:
    """Return a stack's state as Pulumi exports it, from its file in a folder of this machine.

    None where Pulumi has to be asked: for another backend or another layout, and for no state.
    """
    url = urlsplit(_url())
    if url.scheme != "file" or url.netloc:
        return None
    try:
        state = state_file.read(Path(unquote(url.path)), stack_file.project_settings()["name"], stack)
        return state if state["deployment"]["resources"] else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def init(pulumi: Pulumi, stack: str) -> None:
    """Create a stack in the backend, with the secrets provider that its file names.

    Raises:
        BerthError: Pulumi fails.
    """
    provider = stack_file.secrets_provider(stack)
    command = ["stack", "init", stack, "--no-select", *(["--secrets-provider", provider] if provider else [])]
    try:
        pulumi.ask(command)
    except FailedCommandError as error:
        raise failure(stack, (), error.stderr) from None


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


def warnings_of(events: Sequence[EngineEvent]) -> list[str]:
    """Return the warnings that the engine reported, each once."""
    found = (event.diagnostic_event for event in events)
    return list(
        dict.fromkeys(warning.message.strip() for warning in found if warning and warning.severity == "warning")
    )


def failure(stack: str, events: Sequence[EngineEvent], stderr: str) -> BerthError:
    """Return the error for a failed command, in the engine's words."""
    if _UNKNOWN.search(stderr):
        return UnknownStackError(f"stack {stack} is not in Pulumi's backend yet; run: pulumi stack init {stack}")
    if not events and is_logged_out(stderr):
        return BerthError(f'{LOGGED_OUT}; run: {LOG_IN}, or for the lab: eval "$(.venv/bin/berth lab env)"')
    errors = errors_of(events)
    for text in errors:
        first, *rest = text.splitlines()
        # The program's words: stacks/load/stack.py.
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
    errors += filter(None, (remedy_of(warning, stack) for warning in warnings_of(events)))
    text = "\n".join(errors) or stderr.strip().removeprefix("error: ") or "pulumi failed without a reason"
    return BerthError(text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…")
