"""Pictures of what berth prints: the recording of the README, and the page of the lab's fleet.

`make pictures` writes them, with `--update-golden`; without it they are compared with what the
commands print now, but for times, ages and the random part of a node's name.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from berth.lab.home import CLONE
from docs.recording import TO
from tests.pages.reader import Reader, arrived

pytestmark = [pytest.mark.lab, pytest.mark.long]

FLEET = "docs/pictures/fleet.html"
_PASSING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|\b\d+ (?:s|m|h)\b|(?<=-[0-9a-f]{8}-)[a-z0-9]{4}\b")

_PROGRESS = re.compile("[\u2800-\u28ff…]|✓ berth")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with arrived(tmp_path_factory.mktemp("pictures") / "berth") as reader:
        run(reader, "make lab")
        yield reader


def run(reader: Reader, command: str) -> None:
    environment = {**reader.environment, "PATH": f"{reader.folder / '.venv/bin'}:{reader.environment['PATH']}"}
    done = subprocess.run(
        shlex.split(command), cwd=reader.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def lasting(text: str) -> str:
    """Text without what differs from run to run."""
    return " ".join(_PASSING.sub("…", text).split())


def lines(drawn: str) -> set[str]:
    """Lines that a recording shows, but those of progress."""
    rows = ET.fromstring(drawn).iterfind(".//{*}g/{*}text/..")  # noqa: S314
    return {line for row in rows if not _PROGRESS.match(line := lasting("".join(row.itertext())))}


def shipped(made: Path, name: Path, request: pytest.FixtureRequest) -> str:
    """Text of the shipped file, which is the made one with --update-golden."""
    if request.config.getoption("--update-golden"):
        name.write_text(made.read_text(encoding="utf-8"), encoding="utf-8")
    return name.read_text(encoding="utf-8")


def test_the_page_of_the_fleet_is_as_berth_status_writes_it(reader: Reader, request: pytest.FixtureRequest) -> None:
    run(reader, "berth status -s lab --html made.html")
    made = reader.folder / "made.html"
    assert lasting(shipped(made, CLONE / FLEET, request)) == lasting(made.read_text(encoding="utf-8"))


def test_the_recording_shows_what_its_commands_print(reader: Reader, request: pytest.FixtureRequest) -> None:
    run(reader, "python -m docs.recording --to made.svg")
    made = reader.folder / "made.svg"
    assert lines(shipped(made, TO, request)) == lines(made.read_text(encoding="utf-8"))
