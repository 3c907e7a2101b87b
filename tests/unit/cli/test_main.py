"""The one place where errors become text and exit codes, and verbs are found."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.shell.console import ProblemsError
from berth.cli.shell.signals import leave_to_the_system, raise_on_signals
from berth.components.core.errors import BadInputError, BerthError
from berth.stacks.load import schema


def raising(error: BaseException) -> Callable[[], str]:
    def schema_text() -> str:
        raise error

    return schema_text


@pytest.mark.parametrize(
    ("error", "code", "stderr"),
    [
        (BerthError("no [answer]", "ask again"), 1, "error: no [answer]\nask again\n"),
        (BadInputError("no such stack"), 2, "error: no such stack\n"),
        (BerthError("odd", code=7), 7, "error: odd\n"),
        (ProblemsError("dev", ["one", "two"]), 2, "✗ dev\n  one\n  two\n"),
        (
            OSError(28, "No space left on device", "report.md"),
            1,
            "error: report.md: No space left on device\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_an_error_is_text_and_an_exit_code(
    error: BaseException, code: int, stderr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "schema_text", raising(error))
    done = CliRunner().invoke(app, ["schema"])
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", stderr)


def test_a_package_of_an_extra_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        schema,
        "schema_text",
        raising(ModuleNotFoundError("No module named 'psutil'", name="psutil")),
    )
    result = CliRunner().invoke(app, ["schema"])
    assert result.exit_code == 2
    assert 'run: pip install "berth-gpu[lab]"' in result.stderr


def _terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class _Field:
    """Descriptor that gets its name while a signal comes, as those of an import may."""

    def __set_name__(self, owner: type, name: str) -> None:
        _terminated()


@pytest.mark.parametrize("work", [_terminated, lambda: type("Imported", (), {"field": _Field()})])
def test_sigterm_ends_as_an_interrupt_does(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "schema_text", work)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raise_on_signals()
    try:
        assert CliRunner().invoke(app, ["schema"]).exit_code == 143
    finally:
        leave_to_the_system()
        for number, handler in before.items():
            signal.signal(number, handler)


CLEANS_UP = """
import os, signal, sys
from berth.cli.verbs.verify.clean_up import cleaned_up
from berth.cli.shell.signals import leave_to_the_system, raise_on_signals

number, before, during = (int(word) for word in sys.argv[1:])

class Run:
    run = "r"

    def clean_up(self):
        for _ in range(during):
            os.kill(os.getpid(), number)
        print("cleaned up", flush=True)

raise_on_signals()
try:
    with cleaned_up(Run(), "proofs", "jobs", "kubectl delete jobs", keep=False):
        for _ in range(before):
            os.kill(os.getpid(), number)
    print("went on", flush=True)
finally:
    leave_to_the_system()
"""


@pytest.mark.parametrize(
    ("sent", "code", "before", "during", "done"),
    [
        (signal.SIGTERM, 143, 0, 1, "cleaned up\n"),
        (signal.SIGINT, -signal.SIGINT, 0, 2, ""),
        (signal.SIGINT, -signal.SIGINT, 1, 0, "cleaned up\n"),
        (signal.SIGTERM, 143, 1, 1, ""),
    ],
)
def test_a_signal_waits_for_a_clean_up_and_the_second_one_does_not(
    sent: signal.Signals, code: int, before: int, during: int, done: str
) -> None:
    arguments = [str(int(sent)), str(before), str(during)]
    ended = subprocess.run(
        [sys.executable, "-c", CLEANS_UP, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (code, done), ended.stderr


def test_an_unknown_verb_is_named() -> None:
    done = CliRunner().invoke(app, ["chek"])
    assert done.exit_code == 2
    assert "chek" in done.stderr
