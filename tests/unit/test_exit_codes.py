"""Exit codes: one table on the page of commands has those of the code and of the help."""

import re
import signal

import pytest

from berth.cli.shell import console, signals
from berth.cli.verbs import lab, preview
from berth.components.core.errors import BAD_INPUT, FAILED
from berth.lab.home import CLONE
from docs.commands import Command, commands

OF_THE_CODE = {
    0,
    FAILED,
    BAD_INPUT,
    preview.CHANGES,
    console.LOST,
    lab.NOT_RUNNING,
    signals.INTERRUPTED,
    128 + signal.SIGHUP,
    signals.TERMINATED,
    255,  # of OpenSSH's client, for a connection that breaks or is refused
}


def table(page: str) -> set[int]:
    """Codes of the table of exit codes on a page."""
    text = (
        (CLONE / page)
        .read_text(encoding="utf-8")
        .partition("| exit code |")[2]
        .partition("\n\n")[0]
    )
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)}


def test_the_table_has_the_exit_codes_of_the_code() -> None:
    assert table("docs/commands.md") == OF_THE_CODE


@pytest.mark.parametrize(
    "command", [command for command in commands() if not command.group], ids=lambda item: item.path
)
def test_the_help_of_a_command_names_no_other_code(command: Command) -> None:
    codes = {int(code) for code in re.findall(r"(?<![\w.])\d+(?!\w|\.\d|,\d)", command.exit_codes)}
    assert 0 in codes
    assert codes <= OF_THE_CODE


def test_pages_agree_with_the_table() -> None:
    assert table("docs/preview.md") <= OF_THE_CODE
    assert "[exit code](commands.md)" in (CLONE / "docs/admin.md").read_text(encoding="utf-8")
