"""Recording of the terminal: the screen that programs write, and the picture that shows it."""

from xml.etree import ElementTree as ET

from berth.lab.home import CLONE
from docs.recording import SHOWN, TO


def test_the_shipped_recording_is_of_the_commands() -> None:
    drawn = TO.read_text(encoding="utf-8")
    shown = "".join(ET.fromstring(drawn).itertext())  # noqa: S314
    assert [command for command in SHOWN if command not in shown] == []
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert str(CLONE) not in drawn
