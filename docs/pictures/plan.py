"""Picture of a plan: a report of `berth preview` from the golden files, with notes on its lines."""

import re
from dataclasses import dataclass
from pathlib import Path

from berth.cli.pulumi.preview.lines import SIGNS, VERBS
from berth.cli.shell.console import LOST
from berth.components.plan.effect import Level
from docs.pictures.svg import LINE, SMALL, WIDTH, Area, Picture, Style

REPORT = Path(__file__).parents[2] / "tests/golden/preview/driver.txt"
"""Report of a plan, which a test compares with what `berth preview` prints."""

_EDGE = 14
_PAD = 12
_GAP = 16
_CODE = Style(SMALL, mono=True)
_TEXT = Style(SMALL)
_GUIDES = re.compile(r"^[│├└─ ]*")
_EXTRA = Style(SMALL, "muted", mono=True)


@dataclass(frozen=True)
class Note:
    """Note on a line of the report.

    Attributes:
        line: beginning of the line, behind the tree's guides, as a pattern.
        title: what the line is.
        text: how to read it.
        tone: color of the line and of the note.
    """

    line: str
    title: str
    text: str
    tone: str


def notes() -> list[Note]:
    """Return the notes, in the order of the lines."""
    signs = ", ".join(f"{sign} {VERBS[key]}" for key, sign in SIGNS.items())
    levels = f"✗ {Level.DESTROYS.word}, ! {Level.DISTURBS.word}, · {Level.HARMLESS.word}"
    return [
        Note(
            r"\w+: \d+ to ",
            "Counts",
            "resources that pulumi up would change, and those that stay",
            "page",
        ),
        Note(
            r"node pool",
            "Component",
            "part of the environment; its resources stand below it",
            "page",
        ),
        Note(r"[+~±−] ", "Operation", f"{signs}; behind it the size of the pool", "violet"),
        Note(r"[✗!·] ", "Effect", f"what happens to the nodes and pods: {levels}", "red"),
        Note(
            r"affects: ",
            "Who is there",
            "RayClusters with pods on it, of engineers' own stacks too",
            "amber",
        ),
        Note(
            r"\S+: .* → ",
            "Cause",
            "field that changes; Google cannot change this one in place",
            "blue",
        ),
        Note(
            r"GPUs that go away",
            "Capacity",
            "may not come back: a reservation or zone can be full",
            "red",
        ),
        Note(
            r"Work that is lost",
            "Work",
            "ask these people first; berth up asks you once more",
            "red",
        ),
        Note(
            r"Cost a day",
            "Cost",
            "after the change, beside now; money where pools have an hourlyRate",
            "green",
        ),
        Note(
            r"Risk: ",
            "Risk",
            f"the worst effect; the command exits with {LOST} if it destroys",
            "red",
        ),
    ]


def draw() -> Picture:
    """Return the picture."""
    report = REPORT.read_text(encoding="utf-8").splitlines()
    picture = Picture(
        "Reading a plan",
        "A report of berth preview with a note on each of its lines: counts, component, operation,"
        " effect, who is there, cause, lost capacity, lost work, cost and risk.",
    )
    below = picture.mark()
    x = _EDGE + 34
    room = WIDTH - 2 * _EDGE - 34 - _PAD
    y = (
        picture.text(_EDGE + _PAD, 26, f"$ berth preview -s {report[0].partition(':')[0]}", _EXTRA)
        + 4
    )
    noted = numbered(report)
    for line in report:
        number, note = noted.get(line, (0, None))
        style = Style(SMALL, note.tone if note else "page", mono=True)
        if note:
            picture.badge(_EDGE + 19, y + 7, str(number), note.tone)
        for part in _folded(line, int(room / _CODE.width("x"))):
            y = picture.text(x, y, part, style, room=room) + 3
    picture.box(Area(_EDGE, 16, WIDTH - 2 * _EDGE, y - 8), "plain", below=below)
    _list(picture, y + 22)
    return picture


def numbered(report: list[str]) -> dict[str, tuple[int, Note]]:
    """Return the number and note of each line that has one.

    Raises:
        ValueError: a note has no line.
    """
    found: dict[str, tuple[int, Note]] = {}
    for number, note in enumerate(notes(), start=1):
        line = next(
            (
                line
                for line in report
                if re.match(note.line, _GUIDES.sub("", line)) and line not in found
            ),
            None,
        )
        if line is None:
            raise ValueError(
                f"{REPORT.name} has no line {note.line!r}: docs/pictures/plan.py is out of date"
            )
        found[line] = (number, note)
    return found


def _folded(line: str, most: int) -> list[str]:
    """Return a line of the tree in parts that fit; parts after the first keep the guides."""
    match = _GUIDES.match(line)
    guides = match.group() if match else ""
    under = re.sub(r"[└─]", " ", guides).replace("├", "│") + "  "
    parts = [""]
    left = guides
    for word in line[len(guides) :].split(" "):
        if len(left) + len(parts[-1]) + len(word) + 1 > most:
            parts[-1] = (left + parts[-1]).rstrip()
            parts.append("")
            left = under
        parts[-1] += word + " "
    return [*parts[:-1], (left + parts[-1]).rstrip()]


def _list(picture: Picture, top: float) -> None:
    """Draw the notes in two columns."""
    width = (WIDTH - 2 * _EDGE - _GAP) / 2
    found = notes()
    half = (len(found) + 1) // 2
    for column in range(2):
        y = top
        for number, note in list(enumerate(found, start=1))[column * half : (column + 1) * half]:
            x = _EDGE + column * (width + _GAP)
            picture.badge(x + 19, y + 8, str(number), note.tone)
            y = picture.text(x + 36, y, note.title, Style(SMALL, note.tone, bold=True))
            y = picture.paragraph(x + 36, y, note.text, width - 36, _TEXT) + SMALL * LINE / 2
