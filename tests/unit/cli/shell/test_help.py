"""Help at any width, and wrong calls in the style of every other error."""

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from berth.cli import verbs
from berth.cli.main import app
from berth.cli.shell.help import SECTIONS, section_of
from tests.unit.cases import table


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name in group.list_commands(None) if hasattr(group, "list_commands") else ():
        yield from commands(group.get_command(None, name), (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def words(text: str | None) -> list[str]:
    return (text or "").split()


@pytest.mark.parametrize(("option", "width"), [("--help", 80), ("-h", 120)])
def test_help_has_every_word(option: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for path, command in COMMANDS.items():
        done = CliRunner().invoke(app, [*path, option])
        assert (done.exit_code, done.stderr) == (0, ""), path
        shown = done.stdout.translate({ord(mark): " " for mark in "│`"})
        texts = [
            command.help,
            *(parameter.help for parameter in command.params if not parameter.hidden),
        ]
        missing = [
            word for text in texts for word in words(text.replace("`", " ")) if word not in shown
        ]
        assert missing == [], path
        names = [
            name
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts)
        ]
        assert [
            name
            for name in names
            if name.startswith("-") and name not in words(shown.replace(",", " "))
        ] == []


def test_the_page_of_all_commands_has_them_in_their_sections() -> None:
    page = CliRunner().invoke(app, ["--help"]).stdout
    assert re.findall(r"─ (\w+) ─", page) == ["Options", *SECTIONS]
    names = {module.name.replace("_", "-") for module in iter_modules(verbs.__path__)}
    for name in names:
        block = page.split(f"─ {section_of(name)} ─")[1].split("╰")[0]
        assert re.search(rf"^│ {name} ", block, flags=re.MULTILINE), name
    assert {name for section in SECTIONS.values() for name in section} <= names


@pytest.mark.parametrize(("call", "problem", "command"), table(__file__, "help.yaml"))
def test_a_wrong_call_is_an_error_like_any_other(call: str, problem: str, command: str) -> None:
    done = CliRunner().invoke(app, call.split())
    assert (done.exit_code, done.stdout, done.stderr) == (
        2,
        "",
        f"error: {problem}\nrun: {command} --help\n",
    )


def test_a_missing_stack_names_the_stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["status"])
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "error: no stack is named, and Pulumi cannot say which one is selected: "
    )
    assert re.search(r"name one with --stack STACK; stacks are .*\bdev\b.*\blab\b", done.stderr)


def test_a_wrong_call_without_a_stack_does_not_ask_pulumi() -> None:
    done = CliRunner().invoke(app, ["status", "--interval", "soon"])
    assert done.stderr.startswith("error: Invalid value for '--interval': ")


def test_a_group_without_a_command_shows_its_help() -> None:
    done = CliRunner().invoke(app, ["lab"])
    assert (done.exit_code, done.stderr) == (2, "")
    assert "Usage: berth lab [OPTIONS] COMMAND" in done.stdout
