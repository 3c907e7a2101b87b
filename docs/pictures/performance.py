"""Picture of durations by the number of engineers, from the figures of the recorded benchmark."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from berth.lab.home import CLONE
from docs.pictures.svg import NORMAL, SMALL, WIDTH, Picture, Style

FIGURES = CLONE / "docs/performance.json"

SERIES = {
    "": ("berth", "blue"),
    "floor: ": ("kubectl, the floor", "green"),
    "helm: ": ("Helm", "amber"),
} | {"plain pulumi: ": ("plain Pulumi, RayClusters alone", "violet")}
"""Names and tones of those who do the same, by the beginning of a figure's name."""

PANELS = ("up", "no-op", "one more", "destroy")
"""Figures of the part `environment` with a panel of their own."""

_EDGE = 18
_LEFT = 48
_GAP = 30
_HIGH = 170
_PANEL = (WIDTH - 2 * _EDGE - _GAP) / 2
_SECONDS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)

Points = Sequence[tuple[int, float]]


def figures() -> dict[str, Any]:
    """Return the recorded figures by part and number of engineers; none before the first record."""
    found: dict[str, Any] = (
        json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    )
    return found


def points(runs: Mapping[str, Any], what: str) -> Points:
    """Return numbers of engineers and seconds of a figure."""
    return [
        (int(size), run["seconds"][what]) for size, run in runs.items() if what in run["seconds"]
    ]


def draw() -> Picture:
    """Return the picture."""
    runs = figures().get("environment", {})
    picture = Picture(
        "An environment with a list of engineers: seconds by the number of engineers",
        f"Durations of {', '.join(PANELS)} with berth, kubectl, Helm and plain Pulumi, on"
        " logarithmic axes; the tables of the page have the figures.",
    )
    x = float(_EDGE)
    top = 16.0
    for name, tone in SERIES.values():
        picture.dot(x + 5, top + 7, tone)
        picture.text(x + 14, top, name, Style(SMALL))
        x += Style(SMALL).width(name) + 40
    for number, what in enumerate(PANELS):
        left = _EDGE + (number % 2) * (_PANEL + _GAP)
        _panel(picture, runs, what, left, top + 34 + (number // 2) * (_HIGH + 66))
    return picture


def _range_of_seconds(series: Iterable[Sequence[tuple[int, float]]]) -> tuple[float, float]:
    """Return the lowest and the highest mark of an axis on which all seconds have room."""
    values = [seconds for found in series for _, seconds in found]
    low = _SECONDS[0]
    for mark in _SECONDS:
        if mark <= min(values, default=1.0):
            low = mark
    high = min(mark for mark in _SECONDS if mark >= max(values, default=10.0) and mark > low)
    return low, high


def _panel(picture: Picture, runs: Mapping[str, Any], what: str, left: float, top: float) -> None:
    series = {tone: points(runs, f"{key}{what}") for key, (_, tone) in SERIES.items()}
    sizes = [int(size) for size in runs]
    low, high = _range_of_seconds(series.values())
    picture.text(left + _LEFT, top, f"{what}, in seconds", Style(NORMAL, bold=True))
    base = top + 24 + _HIGH
    right = left + _PANEL - 14

    def at(size: int, seconds: float) -> tuple[float, float]:
        span = math.log(max(sizes) / min(sizes)) or 1.0
        across = math.log(size / min(sizes)) / span
        up = math.log(seconds / low) / math.log(high / low)
        return round(left + _LEFT + 8 + across * (right - left - _LEFT - 8), 1), round(
            base - up * _HIGH, 1
        )

    for mark in (mark for mark in _SECONDS if low <= mark <= high):
        _, y = at(min(sizes), mark)
        picture.line([(left + _LEFT, y), (right, y)], "page")
        picture.text(left + _LEFT - 8, y - 7, f"{mark:g}", Style(SMALL, "muted"), anchor="end")
    for size in sizes:
        picture.text(
            at(size, low)[0], base + 6, f"{size:,}", Style(SMALL, "muted"), anchor="middle"
        )
    for tone, found in series.items():
        placed = [at(size, seconds) for size, seconds in found]
        for one, other in pairwise(placed):
            picture.line([one, other], tone)
        for x, y in placed:
            picture.dot(x, y, tone)
