"""Help at any width, and wrong calls in the style of every other error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from berth.cli import verbs
from berth.cli.help import Section
from berth.cli.main import app


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name in group.list_commands(None) if hasattr(group, "list_commands") else ():
        yield from commands(group.get_command(None, name), (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def words(text: str | None) -> list[str]:
    return (text or "").split()


def test_there_are_commands_of_all_depths() -> None:
    assert {(), ("check",), ("engineer", "add"), ("lab", "real", "up")} <= set(COMMANDS)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_has_every_word_at_any_width(width: int, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for path, command in COMMANDS.items():
        done = CliRunner().invoke(app, [*path, option])
        assert (done.exit_code, done.stderr) == (0, ""), path
        assert [line for line in done.stdout.splitlines() if len(line) > width] == [], path
        shown = " ".join(words(done.stdout))
        texts = [command.help, *(parameter.help for parameter in command.params if not parameter.hidden)]
        assert [text for text in texts if " ".join(words(text)) not in shown] == [], path
        names = [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
        assert [name for name in names if name.startswith("-") and name not in words(shown.replace(",", " "))] == []
        assert not re.search(r"<\w+>|[╭│…]", re.sub(r"\[\w+…\]", "", done.stdout)), path


def test_the_page_of_all_commands_has_them_in_their_sections() -> None:
    page = CliRunner().invoke(app, ["--help"]).stdout
    titles = [section.value for section in Section]
    assert re.findall(r"^(\w+):$", page, flags=re.MULTILINE) == [*titles, "Options"]
    for module in iter_modules(verbs.__path__):
        section = import_module(f"{verbs.__name__}.{module.name}").SECTION
        block = page.split(f"\n{section.value}:\n")[1].split("\n\n")[0]
        name = module.name.replace("_", "-")
        assert re.search(rf"^  {name} ", block, flags=re.MULTILINE), name


@pytest.mark.parametrize(
    ("call", "problem", "remedy"),
    [
        ("connec", "berth has no command 'connec'; did you mean 'connect'?", "`berth --help` lists the commands"),
        ("lab upp", "berth lab has no command 'upp'; did you mean 'up'?", "`berth lab --help` lists the commands"),
        (
            "--verison",
            "berth has no option '--verison'; did you mean '--version'?",
            "`berth --help` lists the commands",
        ),
        (
            "status --stac lab",
            "berth status has no option '--stac'; did you mean '--stack'?",
            "`berth status --help` shows the arguments and options",
        ),
        (
            "status -s",
            "-s needs a value",
            "`berth COMMAND --help` shows the arguments and options",
        ),
        (
            "new",
            "berth new needs FOLDER: folder to create; its name is the project's",
            "`berth new --help` shows the arguments and options",
        ),
        (
            "connect a b c",
            "berth connect does not take 'b c'",
            "`berth connect --help` shows the arguments and options",
        ),
        (
            "connect --client x",
            "--client PORT: 'x' is not a whole number",
            "`berth connect --help` shows the arguments and options",
        ),
        (
            "connect --client 0",
            "--client PORT: 0 is too small; the smallest is 1",
            "`berth connect --help` shows the arguments and options",
        ),
        (
            "connect --client 65536",
            "--client PORT: 65536 is too large; the largest is 65535",
            "`berth connect --help` shows the arguments and options",
        ),
        (
            "status -s lab --interval soon",
            "--interval SECONDS: 'soon' is not a number",
            "`berth status --help` shows the arguments and options",
        ),
    ],
)
def test_a_wrong_call_is_an_error_like_any_other(call: str, problem: str, remedy: str) -> None:
    done = CliRunner().invoke(app, call.split())
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"error: {problem}\n{remedy}\n")


def test_a_missing_stack_names_the_stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["status"])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: no stack is named, and Pulumi cannot say which one is selected: ")
    assert re.search(r"name one with --stack STACK; stacks are .*\bdev\b.*\blab\b", done.stderr)


def test_a_wrong_call_without_a_stack_does_not_ask_pulumi() -> None:
    done = CliRunner().invoke(app, ["status", "--interval", "soon"])
    assert done.stderr.startswith("error: --interval SECONDS: 'soon' is not a number")


def test_a_group_without_a_command_shows_its_help_on_stderr() -> None:
    done = CliRunner().invoke(app, ["lab"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: berth lab [OPTIONS] COMMAND\n")
