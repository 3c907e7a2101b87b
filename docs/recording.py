"""Writer of docs/recording.svg: berth's commands in the running lab, as a terminal shows them.

Waits are shortened; nothing else is changed. The picture has a light and a dark palette, and stands
still for readers who ask for no motion.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby, islice
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from docs.terminal import Row, Screen, Style, UnfinishedError, output

TO = Path(__file__).with_name("recording.svg")
WIDTH = 106
HEIGHT = 30
NAME = "dana"
SHOWN = (
    "berth status -s lab",
    f"berth create {NAME} --workers 2 --yes",
    "berth status -s lab",
)
AFTER = (f"berth destroy -s {NAME} --yes --allow-destroy",)

READ = 2.6
TYPED = 0.8
STEP = 0.6
LONGEST = 0.6
"""Seconds: of a command's result, of its typed line, between two frames at least and at most."""

WAITING = 3
"""Frames of a wait, at most."""
_CLOCK = re.compile(r"\d+:\d\d:\d\d|[\u2800-\u28ff]")

CELL = 8.4
LINE = 19.0
LEFT = 18.0
TOP = 46.0
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
LIGHT = {
    "back": "#f6f8fa",
    "bar": "#d0d7de",
    "text": "#1f2328",
    "red": "#cf222e",
    "green": "#1a7f37",
    "yellow": "#9a6700",
    "blue": "#0969da",
    "magenta": "#8250df",
    "cyan": "#1b7c83",
    "black": "#57606a",
    "white": "#57606a",
}
DARK = {
    "back": "#161b22",
    "bar": "#30363d",
    "text": "#e6edf3",
    "red": "#ff7b72",
    "green": "#56d364",
    "yellow": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "black": "#8b949e",
    "white": "#b1bac4",
}


@dataclass(frozen=True)
class Frame:
    """Screen, and the seconds for which it is shown."""

    rows: tuple[Row, ...]
    seconds: float


def record(commands: Sequence[str]) -> list[Frame]:
    """Frames of a terminal in which the commands run, one after the other.

    Raises:
        UnfinishedError: a command failed.
    """
    screen = Screen(WIDTH, HEIGHT)
    frames = []
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDTH),
        "LINES": str(HEIGHT),
    }
    for command in commands:
        screen.write("\x1b[1;32m$\x1b[0m ")
        screen.write(f"\x1b[1m{command}\x1b[0m\r\n")
        frames.append(Frame(screen.rows(), TYPED))
        frames += shortened(
            during(screen, output(shlex.split(command), environment, WIDTH, HEIGHT))
        )
        frames.append(Frame(screen.rows(), READ))
        screen.write("\r\n")
    return frames


def during(screen: Screen, written: Iterator[tuple[float, str]]) -> list[Frame]:
    """Frames of a command while it runs."""
    frames = []
    shown = 0.0
    for at, text in written:
        if at - shown >= STEP:
            frames.append(Frame(screen.rows(), min(at - shown, LONGEST)))
            shown = at
        screen.write(text)
    return frames


def shortened(frames: Iterable[Frame]) -> list[Frame]:
    """Frames of which those that differ only in a clock or a spinner are a few."""

    def lasting(frame: Frame) -> str:
        return _CLOCK.sub("", " ".join(run.text for row in frame.rows for run in row))

    return [frame for _, same in groupby(frames, lasting) for frame in islice(same, WAITING)]


def svg(frames: Sequence[Frame], title: str) -> str:
    """Picture of frames, one after the other, again and again."""
    width = LEFT * 2 + WIDTH * CELL
    height = TOP + HEIGHT * LINE + 10
    shown = []
    for rows_of_frame, same in groupby(frames, lambda one: one.rows):
        shown.append(Frame(rows_of_frame, sum(frame.seconds for frame in same)))
    total = sum(frame.seconds for frame in shown)
    at = 0.0
    steps = []
    for number, frame in enumerate(shown):
        steps.append(
            f"{100 * at / total:.2f}%{{transform:translateY({0 - number * height:.0f}px)}}"
        )
        at += frame.seconds
    rows = {
        row: f"r{number}"
        for number, row in enumerate(dict.fromkeys(row for one in shown for row in one.rows))
    }
    defined = "\n".join(
        f'<g id="{name}">{"".join(_texts(row))}</g>' for row, name in rows.items() if row
    )
    screens = "\n".join(
        "".join(
            f'<use href="#{rows[row]}" x="{LEFT:g}" y="{number * height + TOP + line * LINE:g}"/>'
            for line, row in enumerate(frame.rows)
            if row
        )
        for number, frame in enumerate(shown)
    )
    last = f"translateY({-(len(shown) - 1) * height:.0f}px)"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"
  role="img" aria-label={quoteattr(title)}>
<!-- `make pictures` writes this file -->
<style>
text {{ font: 14px {FONT}; white-space: pre }}
.bold {{ font-weight: bold }} .dim {{ opacity: .7 }} .italic {{ font-style: italic }}
{_palette(LIGHT)}
@media (prefers-color-scheme: dark) {{ {_palette(DARK)} }}
#strip {{ transform: {last}; animation: play {total:.1f}s step-end infinite }}
@keyframes play {{ {"".join(steps)} }}
@media (prefers-reduced-motion: reduce) {{ #strip {{ animation: none }} }}
</style>
<defs>
{defined}
</defs>
<rect class="window" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>
{"".join(f'<circle class="dot" cx="{at}" cy="17" r="5"/>' for at in (20, 38, 56))}
<svg y="28" width="{width:g}" height="{height - 34:g}" viewBox="0 28 {width:g} {height - 34:g}">
<g id="strip">
{screens}
</g>
</svg>
</svg>
"""


def _palette(colors: dict[str, str]) -> str:
    window = (
        f".window {{ fill: {colors['back']}; stroke: {colors['bar']} }} .dot {{ fill:"
        f" {colors['bar']} }}"
    )
    text = f"text {{ fill: {colors['text']} }}"
    named = [
        f".{name} {{ fill: {color} }}"
        for name, color in colors.items()
        if name not in {"back", "bar", "text"}
    ]
    return " ".join([window, text, *named])


def _texts(row: Row) -> Iterator[str]:
    """Text elements of a line; each run has its own length, so that columns stay columns."""
    for run in row:
        text = run.text.strip(" ")
        column = run.column + run.text.index(text)
        look = _classes(run.style)
        named = f' class="{look}"' if look else ""
        length = f' x="{column * CELL:g}" textLength="{len(text) * CELL:g}"'
        yield f"<text{named}{length}>{escape(text)}</text>"


def _classes(style: Style) -> str:
    flags = {"bold": style.bold, "dim": style.dim, "italic": style.italic}
    return " ".join([*filter(None, [style.color]), *(name for name, on in flags.items() if on)])


def main() -> int:
    """Record the commands, and remove what they created."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--to", type=Path, default=TO)
    given = arguments.parse_args()
    try:
        frames = record(SHOWN)
    except UnfinishedError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    finally:
        for command in AFTER:
            subprocess.run(shlex.split(command), check=False, stdout=subprocess.DEVNULL)
    # The first thing to see is a result, not an empty terminal.
    frames = list(dropwhile(lambda frame: len(frame.rows) <= 2, frames))  # noqa: PLR2004
    given.to.write_text(svg(frames, "Terminal: " + ", then ".join(SHOWN)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
