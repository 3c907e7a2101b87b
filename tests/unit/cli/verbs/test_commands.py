"""Reference of commands: every verb with its arguments, exit codes and an example."""

import shlex

import pytest

from docs.commands import Command, commands
from tests.unit.test_docs import in_shell, parse

COMMANDS = [command for command in commands() if not command.group]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_every_command_has_a_description_exit_codes_and_an_example(command: Command) -> None:
    assert command.paragraphs
    assert command.exit_codes
    assert command.examples
    for example in command.examples:
        (called, *_) = in_shell(example)
        assert shlex.join(["berth", *called]).startswith(f"{command.path}"), example
        assert parse(called, whole=True) == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_every_argument_and_option_has_a_description(command: Command) -> None:
    assert [names for names, _, description in command.rows if not description] == []
