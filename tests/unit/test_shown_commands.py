"""Commands of berth in messages, remedies and help: each one exists, with its options.

Those of pages are in test_docs.py, those of kubectl, Helm and Pulumi are typed in
tests/lab/test_commands.py, and gcloud's in test_gcloud_commands.py.
"""

import re
import shlex

import typer

from berth.cli.main import app
from tests.commands import commands_of_messages
from tests.unit.test_docs import parse

VERBS = frozenset(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

# A sentence that goes on after a command has no options.
_GOES_ON = re.compile(
    r"unexpected extra argument\(s\) \([a-z ,'’]+\)|Option '[^']+' requires an argument\.$"
)


def problem_of(command: str) -> str:
    """Return what berth says of a command in a message; "" for nothing."""
    text = re.split(r", | \(|: |…|\.$| > |<", command)[0].strip("`'\" ")
    try:
        words = shlex.split(text)[1:]
    except ValueError:
        return ""  # a quotation that the sentence goes on in
    if not words or words[0] not in VERBS:
        return ""
    problem = parse(words, whole=False)
    return "" if _GOES_ON.search(problem) else problem


def test_messages_show_commands_that_exist() -> None:
    commands = list(commands_of_messages("berth"))
    assert len({command.text for command in commands}) > 100
    wrong = {f"{command.place}: {command.text}": problem_of(command.text) for command in commands}
    assert {place: problem for place, problem in wrong.items() if problem} == {}


def test_a_wrong_command_is_seen() -> None:
    assert problem_of("berth status --no-such-option")
    assert problem_of("berth home forget alice")
    assert not problem_of("berth status -s lab shows why")
