"""What berth prints: the recording of the README, the page of the lab's fleet, and the commonest
commands in a terminal of 80 columns.

`make pictures` writes them, with `--update-golden`; without it they are compared with what the
commands print now, but for times, ages and the random part of a node's name.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from berth.lab.home import CLONE
from docs.recording import TO
from docs.terminal import Row, Screen, output
from tests.pages.reader import Reader, arrived

pytestmark = [pytest.mark.lab, pytest.mark.long]

FLEET = "docs/pictures/fleet.html"
_PASSING = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|\b\d+ (?:s|m|h)\b|(?<=-[0-9a-f]{8}-)[a-z0-9]{4}\b|─+"
)

_PROGRESS = re.compile("[\u2800-\u28ff…]|✓ berth|suspending ")
COMMONEST = """check lab; preview -s lab; up -s lab --yes; status -s lab; gpus -s lab;
    explain defaults.worker; images -s lab; home list -s lab; engineer add erin -s lab --workers 2;
    suspend carol --yes""".split(";")
"""Commands in this order; the last two change the reader's stack and a berth."""
_COLUMNS = 80


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with arrived(tmp_path_factory.mktemp("pictures") / "berth") as reader:
        run(reader, "make lab")
        yield reader


def variables(reader: Reader) -> dict[str, str]:
    """Variables of a shell in which the virtual environment is active."""
    return {
        **reader.environment,
        "PATH": f"{reader.folder / '.venv/bin'}:{reader.environment['PATH']}",
    }


def run(reader: Reader, command: str) -> None:
    done = subprocess.run(
        shlex.split(command),
        cwd=reader.folder,
        env=variables(reader),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def shown_on(row: Row) -> str:
    """Characters of a line of a terminal."""
    line = ""
    for part in row:
        line = line.ljust(part.column) + part.text
    return line.rstrip()


def lasting(text: str) -> str:
    """Text without what differs from run to run."""
    return " ".join(_PASSING.sub("…", text).split())


def lasting_row(row: str) -> str:
    """A row of a terminal without ages, and without the widths of columns that follow from them."""
    row = re.sub(r"a terminal of \d+ columns", "a terminal of … columns", row)
    return re.sub(r"(?<=\S) {3,}", "  ", _PASSING.sub("…", row))


def lines(drawn: str) -> set[str]:
    """Lines that a recording shows, but those of progress."""
    rows = ET.fromstring(drawn).iterfind(".//{*}g/{*}text/..")  # noqa: S314
    return {line for row in rows if not _PROGRESS.match(line := lasting("".join(row.itertext())))}


def shipped(made: Path, name: Path, request: pytest.FixtureRequest) -> str:
    """Text of the shipped file, which is the made one with --update-golden."""
    if request.config.getoption("--update-golden"):
        name.write_text(made.read_text(encoding="utf-8"), encoding="utf-8")
    return name.read_text(encoding="utf-8")


def test_the_page_of_the_fleet_is_as_berth_status_writes_it(
    reader: Reader, request: pytest.FixtureRequest
) -> None:
    run(reader, "berth status -s lab --html made.html")
    made = reader.folder / "made.html"
    assert lasting(shipped(made, CLONE / FLEET, request)) == lasting(
        made.read_text(encoding="utf-8")
    )


def test_the_recording_shows_what_its_commands_print(
    reader: Reader, request: pytest.FixtureRequest
) -> None:
    run(reader, "python -m docs.recording --to made.svg")
    made = reader.folder / "made.svg"
    assert lines(shipped(made, TO, request)) == lines(made.read_text(encoding="utf-8"))


def test_the_commonest_commands_fit_eighty_columns(
    reader: Reader, golden: Callable[[str, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reader.folder)
    environment = {**variables(reader), "TERM": "xterm-256color"}
    shown: dict[str, list[str]] = {}
    for command in COMMONEST:
        screen = Screen(_COLUMNS, 500)
        for _, text in output(["berth", *command.split()], environment, _COLUMNS, 500):
            screen.write(text)
        rows = [lasting_row(shown_on(row)) for row in screen.rows()]
        shown[" ".join(command.split())] = [row for row in rows if not _PROGRESS.match(row)]
    golden("columns", shown)
