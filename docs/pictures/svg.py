"""Shapes of a picture as SVG, in light and dark colors, with texts that are measured.

One file serves both: colors follow `prefers-color-scheme`, and the picture has a background of its
own, so that it is readable on a page of the other kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

WIDTH = 860
"""Width of the pictures: about that of a README on GitHub, so sizes are those on the screen."""

SMALL = 12
NORMAL = 13.5
LARGE = 16
"""Sizes of texts."""

LINE = 1.35
"""Distance of lines, in sizes of the text."""
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# Widths of the characters from space to ~ in DejaVu Sans, in thousandths of the size. It is wider
# than the other fonts, so a text that fits with it fits with them.
_WIDTHS = (
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636"
    " 636 636 636 337 337 838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863"
    " 748 787 603 787 695 635 611 732 684 989 685 611 685 390 337 390 838 500 500 613 635 550 635"
    " 615 352 635 634 278 278 579 278 974 634 612 635 635 411 521 392 634 592 818 592 592 525 636"
    " 337 636 838"
)
_WIDTH_OF = {chr(32 + number): int(width) for number, width in enumerate(_WIDTHS.split())}
_OTHER = 838
_BOLD = 1.11
_FIXED = 602

# Fill, line and text of each tone, on a light and on a dark background.
_TONES = {
    "page": (("#ffffff", "#d0d7de", "#1f2328"), ("#0d1117", "#30363d", "#e6edf3")),
    "plain": (("#f6f8fa", "#afb8c1", "#1f2328"), ("#161b22", "#484f58", "#e6edf3")),
    "muted": (("#eaeef2", "#8c959f", "#57606a"), ("#21262d", "#6e7681", "#9ea7b3")),
    "blue": (("#e7f1fd", "#4a8ddc", "#0b4f9e"), ("#10243e", "#3f7fca", "#8cc2ff")),
    "green": (("#e4f6e9", "#3fa45b", "#176130"), ("#0f2a1a", "#37914f", "#7fdc9a")),
    "amber": (("#fdf3dc", "#c68a1a", "#7a4f00"), ("#2e2208", "#a87718", "#f0c465")),
    "violet": (("#f2ebfd", "#9167d8", "#5a32a3"), ("#251a3d", "#8460c2", "#cbb2ff")),
    "red": (("#fdeceb", "#d8524a", "#a3201a"), ("#3a1414", "#c24b44", "#ff9d96")),
    "teal": (("#e0f5f4", "#2a9d96", "#0b5f5a"), ("#0a2b2a", "#258a84", "#74dcd4")),
    "pink": (("#fdeaf4", "#cf5b9a", "#96246a"), ("#371329", "#b8518a", "#ffa3d3")),
}


@dataclass(frozen=True)
class Style:
    """Look of a text."""

    size: float = NORMAL
    tone: str = "page"
    bold: bool = False
    mono: bool = False

    def width(self, text: str) -> float:
        """Return the width of a text."""
        if self.mono:
            return len(text) * _FIXED * self.size / 1000
        per_size = sum(_WIDTH_OF.get(character, _OTHER) for character in text) / 1000
        return per_size * self.size * (_BOLD if self.bold else 1)

    def wrapped(self, text: str, room: float) -> list[str]:
        """Return the lines of a text that fit into a width."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if not lines[-1] or self.width(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines


PLAIN = Style()


@dataclass(frozen=True)
class Area:
    """Rectangle of a picture, and what stands in it."""

    x: float
    y: float
    width: float
    height: float
    what: str = ""

    def meets(self, other: Area) -> bool:
        """Return whether two rectangles have a part in common."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def holds(self, other: Area) -> bool:
        """Return whether another rectangle lies inside."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.width <= self.x + self.width
            and other.y + other.height <= self.y + self.height
        )


@dataclass
class Picture:
    """Picture that shapes are added to.

    Attributes:
        title: name of the picture, for people who cannot see it.
        description: content of the picture, for them.
        height: height, which grows with what is added.
        texts: rectangles of all texts.
        lines: rectangles of all parts of lines.
    """

    title: str
    description: str
    width: float = WIDTH
    height: float = 0
    texts: list[Area] = field(default_factory=list)
    lines: list[Area] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)

    def mark(self) -> int:
        """Return the place in the order of drawing, for a box below what is added after it."""
        return len(self._parts)

    def box(
        self,
        area: Area,
        tone: str = "plain",
        *,
        dashed: bool = False,
        solid: bool = False,
        radius: float = 8,
        below: int | None = None,
    ) -> None:
        """Add a rectangle, by default on top of what is there; a solid one is all in one color."""
        self._reach(area)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        place = f'x="{area.x:g}" y="{area.y:g}" width="{area.width:g}" height="{area.height:g}"'
        shape = (
            f'<rect class="{"solid" if solid else "box"} {tone}" {place} rx="{radius:g}"{dashes}/>'
        )
        self._parts.insert(len(self._parts) if below is None else below, shape)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: Style = PLAIN,
        *,
        anchor: str = "start",
        room: float | None = None,
    ) -> float:
        """Add a line of text with its top at `y`; return the top of the next line.

        Raises:
            ValueError: the text is wider than its room.
        """
        width = style.width(text)
        if room is not None and width > room:
            raise ValueError(f"{text!r} takes {width:.0f} of {room:.0f}")
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        area = Area(left, y, width, style.size * 1.15, text)
        self.texts.append(area)
        self._reach(area)
        kind = f"text {style.tone}{' bold' if style.bold else ''}{' mono' if style.mono else ''}"
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(
            f'<text class="{kind}" x="{x:g}" y="{y + style.size * 0.92:.1f}"'
            f' font-size="{style.size:g}"{place}>{escape(text, quote=False)}</text>'
        )
        return y + style.size * LINE

    def paragraph(
        self,
        x: float,
        y: float,
        text: str,
        room: float,
        style: Style = PLAIN,
        *,
        anchor: str = "start",
    ) -> float:
        """Add a text in as many lines as it needs; return the top of the next line."""
        for line in style.wrapped(text, room):
            y = self.text(x, y, line, style, anchor=anchor, room=room)
        return y

    def badge(self, x: float, y: float, text: str, tone: str) -> None:
        """Add a short text in a circle, whose middle is the point."""
        self._parts.append(f'<circle class="box {tone}" cx="{x:g}" cy="{y:g}" r="9.5"/>')
        self.text(x, y - 7, text, Style(SMALL, tone, bold=True), anchor="middle")

    def arrow(
        self, points: Sequence[tuple[float, float]], tone: str = "muted", *, dashed: bool = False
    ) -> None:
        """Add a line through points, with a head at its end."""
        (x, y), (before_x, before_y) = points[-1], points[-2]
        length = max(((x - before_x) ** 2 + (y - before_y) ** 2) ** 0.5, 1)
        along_x = (x - before_x) / length
        along_y = (y - before_y) / length
        base_x = x - 8 * along_x
        base_y = y - 8 * along_y
        self.line([*points[:-1], (round(base_x, 1), round(base_y, 1))], tone, dashed=dashed)
        head = [
            (x, y),
            (base_x - 4 * along_y, base_y + 4 * along_x),
            (base_x + 4 * along_y, base_y - 4 * along_x),
        ]
        self._parts.append(
            f'<polygon class="head {tone}"'
            f' points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in head)}"/>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], tone: str = "muted", *, dashed: bool = False
    ) -> None:
        """Add a line through points."""
        for (one_x, one_y), (other_x, other_y) in pairwise(points):
            area = Area(
                min(one_x, other_x), min(one_y, other_y), abs(one_x - other_x), abs(one_y - other_y)
            )
            self.lines.append(area)
            self._reach(area)
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(f'<polyline class="line {tone}" points="{path}"{dashes}/>')

    def dot(self, x: float, y: float, tone: str) -> None:
        """Add a small filled circle, whose middle is the point."""
        self._parts.append(f'<circle class="solid {tone}" cx="{x:g}" cy="{y:g}" r="3.5"/>')

    def svg(self) -> str:
        """Return the file."""
        height = round(self.height + 14)
        self.box(Area(0.5, 0.5, self.width - 1, height - 1), "page", radius=10, below=0)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height}"'
            f' width="{self.width:g}" height="{height}" role="img">'
        )
        return "\n".join(
            [
                head,
                f"<title>{escape(self.title)}</title>",
                f"<desc>{escape(self.description)}</desc>",
                f"<style>{_style()}</style>",
                *self._parts,
                "</svg>\n",
            ]
        )

    def _reach(self, area: Area) -> None:
        self.height = max(self.height, area.y + area.height)


def _style() -> str:
    rules = [
        f".text {{ font-family: {_FONT} }}",
        ".bold { font-weight: 600 }",
        f".mono {{ font-family: {_MONO}; white-space: pre }}",
        ".line { fill: none; stroke-width: 1.5 }",
        *_rules(0),
        "@media (prefers-color-scheme: dark) {",
        *_rules(1),
        "}",
    ]
    return "\n" + "\n".join(rules) + "\n"


def _rules(scheme: int) -> Iterable[str]:
    for name, colors in _TONES.items():
        fill, line, ink = colors[scheme]
        yield (
            f".box.{name} {{ fill: {fill}; stroke: {line} }} .line.{name} {{ stroke: {line} }}"
            f" .head.{name}, .solid.{name} {{ fill: {line} }} .text.{name} {{ fill: {ink} }}"
        )
