"""Recording of the terminal: the screen that programs write, and the picture that shows it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from berth.lab.home import CLONE
from docs.recording import SHOWN, TO, record
from docs.terminal import Row, Screen, UnfinishedError


def text(rows: tuple[Row, ...]) -> list[str]:
    lines = []
    for row in rows:
        line = ""
        for run in row:
            line = line.ljust(run.column) + run.text
        lines.append(line)
    return lines


def screen(*written: str, width: int = 40, height: int = 5) -> Screen:
    shown = Screen(width, height)
    for part in written:
        shown.write(part)
    return shown


def test_lines_that_are_written_again_replace_what_they_were() -> None:
    assert text(screen("one\r\ntwo\r\n\x1b[2A\x1b[2KONE\r\n").rows()) == ["ONE", "two", ""]
    assert text(screen("50 %\r100 %").rows()) == ["100 %"]
    assert text(screen("a\r\nb\r\nc\x1b[2A\x1b[J").rows()) == ["a"]


def test_a_program_that_fails_ends_the_recording() -> None:
    with pytest.raises(UnfinishedError, match="exit code 3"):
        record(["sh -c 'exit 3'"])


def test_the_shipped_recording_is_of_the_commands() -> None:
    drawn = TO.read_text(encoding="utf-8")
    shown = "".join(ET.fromstring(drawn).itertext())  # noqa: S314
    assert [command for command in SHOWN if command not in shown] == []
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert str(CLONE) not in drawn
