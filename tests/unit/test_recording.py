"""Recording of the terminal: the screen that programs write, and the picture that shows it."""

from __future__ import annotations

import os
from xml.etree import ElementTree as ET

import pytest

from berth.lab.home import CLONE
from docs.recording import LONGEST, SHOWN, TO, WAITING, Frame, during, record, shortened, svg
from docs.terminal import Row, Run, Screen, Style, UnfinishedError, output


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


def test_a_screen_scrolls_and_breaks_lines() -> None:
    assert text(screen("".join(f"{n}\r\n" for n in range(9)), height=3).rows()) == ["7", "8", ""]
    assert text(screen("abcdef", width=4).rows()) == ["abcd", "ef"]


def test_runs_have_the_look_that_a_program_asked_for() -> None:
    (row,) = screen("\x1b[1;32m$\x1b[0m berth \x1b[91mno\x1b[39m\x1b[2m x\x1b[22m y").rows()
    assert row == (
        Run(0, "$", Style("green", bold=True)),
        Run(1, " berth ", Style()),
        Run(8, "no", Style("red")),
        Run(10, " x", Style(dim=True)),
        Run(12, " y", Style()),
    )
    # Links and what hides the cursor have no place on the screen.
    assert text(screen("\x1b[?25l\x1b]8;;https://ray.io\x1b\\Ray\x1b]8;;\x1b\\\x1b[?25h").rows()) == ["Ray"]


def test_waits_are_shortened_and_short_steps_joined() -> None:
    written = [(0.1, "a"), (0.2, "b"), (9.0, "c")]
    frames = during(Screen(9, 3), iter(written))
    assert [(text(frame.rows), frame.seconds) for frame in frames] == [(["ab"], LONGEST)]


def test_of_a_wait_a_few_frames_are_left() -> None:
    waits = [screen(f"⠋ previewing 0:00:{second:02}") for second in range(30)]
    frames = [Frame(one.rows(), 0.6) for one in [*waits, screen("done")]]
    assert [text(frame.rows) for frame in shortened(frames)] == [
        *([f"⠋ previewing 0:00:0{second}"] for second in range(WAITING)),
        ["done"],
    ]


def test_a_program_runs_in_a_terminal_of_that_size() -> None:
    written = "".join(part for _, part in output(["sh", "-c", "test -t 1 && stty size"], dict(os.environ), 100, 30))
    assert written.split() == ["30", "100"]


def test_a_program_that_fails_ends_the_recording() -> None:
    with pytest.raises(UnfinishedError, match="exit code 3"):
        record(["sh -c 'exit 3'"])


def test_the_picture_shows_every_frame_for_its_time() -> None:
    first, second = screen("$ berth <x>").rows(), screen("$ berth <x>\r\nready").rows()
    drawn = svg([Frame(first, 1), Frame(first, 1), Frame(second, 3)], "A terminal")
    root = ET.fromstring(drawn)  # noqa: S314
    assert "berth <x>" in "".join(root.itertext())
    assert drawn.count("<use ") == 3, "a line is drawn once, and shown where it stands"
    assert "@keyframes play { 0.00%{transform:translateY(0px)}40.00%{" in drawn
    assert "prefers-color-scheme: dark" in drawn
    assert "prefers-reduced-motion" in drawn


def test_the_shipped_recording_is_of_the_commands() -> None:
    drawn = TO.read_text(encoding="utf-8")
    shown = "".join(ET.fromstring(drawn).itertext())  # noqa: S314
    assert [command for command in SHOWN if command not in shown] == []
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert str(CLONE) not in drawn
