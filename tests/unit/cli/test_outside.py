"""Every command outside of a Pulumi project, and in a folder inside of one."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.cli.main import app
from docs.commands import Command, commands

NO_PROJECT = (
    "error: no Pulumi.yaml here or above, so berth does not know which stacks are meant\n"
    "cd into your repository, or make one: berth new FOLDER\n"
)
NEEDS_NONE = {
    "berth docs": (),
    "berth explain": (),
    "berth new": ("fleet",),
    "berth schema": (),
}
"""Commands that work without a project, with their arguments."""
BUILDS = "berth lab tools"
"""Command that needs no project either, and takes minutes."""
COMMANDS = [command for command in commands() if not command.group]


def words_of(command: Command, *options: str) -> list[str]:
    """Words of a call with each argument that the command requires, and options that it has."""
    words = command.path.split()[1:]
    for parameter in command.click.params:
        if parameter.required and parameter.param_type_name == "argument":
            words.append("alice")
        elif parameter.required or set(options) & set(parameter.opts):
            words += [parameter.opts[0], "dev"]
    return words


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("BERTH_LAB", "PULUMI_BACKEND_URL"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--stack", "--environment")], ids=["", "of a stack"])
@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command.path not in {*NEEDS_NONE, BUILDS}],
    ids=lambda command: command.path,
)
def test_a_command_outside_of_a_project_says_so_and_does_nothing(
    command: Command, options: Sequence[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not even an installed Pulumi would be asked.
    monkeypatch.setenv("PATH", str(elsewhere))
    done = CliRunner().invoke(app, words_of(command, *options))
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", NO_PROJECT)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("path", NEEDS_NONE)
def test_a_command_that_needs_no_project_works_without_one(path: str) -> None:
    done = CliRunner().invoke(app, [*path.split()[1:], *NEEDS_NONE[path]])
    assert (done.exit_code, bool(done.stdout)) == (0, True)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_help_works_without_a_project(command: Command) -> None:
    done = CliRunner().invoke(app, [*command.path.split()[1:], "--help"])
    assert (done.exit_code, done.stderr) == (0, "")


def test_the_policies_without_a_project_are_the_built_in_ones(elsewhere: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--policies"])
    assert (done.exit_code, "image-digest" in done.stdout) == (0, True)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_of_the_project_is_the_project(elsewhere: Path) -> None:
    assert CliRunner().invoke(app, ["new", "fleet"]).exit_code == 0
    os.chdir("fleet/stacks")
    done = CliRunner().invoke(app, ["check", "lab"])
    assert (done.exit_code, done.stdout.startswith("✓ lab (environment")) == (0, True)
    done = CliRunner().invoke(app, ["check", "nosuch"])
    assert "stacks/Pulumi.nosuch.yaml does not exist" in done.stderr
    assert str(elsewhere) not in done.stderr
