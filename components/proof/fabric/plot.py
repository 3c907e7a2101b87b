"""Plot of a sweep as SVG: bus bandwidth over tensor size, with the threshold. Pure."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from berth.components.proof.fabric.evidence import Point
from berth.components.proof.fabric.verdicts import Threshold, readable

STYLE = Path(__file__).with_name("plot.css")
"""Rules of a page that has the plot."""

_WIDTH, _HEIGHT = 680, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 30, 50
_MOST_TICKS = 6


def plot(sweep: Sequence[Point], threshold: Threshold) -> str:
    """Return the plot of a sweep."""
    top = max([point.bus for point in sweep] + ([threshold.bus] if threshold.bus is not None else [])) or 1
    ticks = list(_ticks(top * 1.05))
    first, last = math.log2(sweep[0].size), math.log2(sweep[-1].size)

    def across(size: float) -> float:
        share = (math.log2(size) - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(bandwidth: float) -> float:
        return _HEIGHT - _BOTTOM - bandwidth / ticks[-1] * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_text(_LEFT - 8, 18, "bus bandwidth (GB/s)", "start")]
    for tick in ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>'
        )
        parts.append(_text(_LEFT - 8, up(tick) + 4, f"{tick:g}", "end"))
    powers = range(math.ceil(first), math.floor(last) + 1, max(2, 2 * round((last - first) / 20)))
    parts += [_text(across(2**power), _HEIGHT - _BOTTOM + 20, readable(2**power), "middle") for power in powers]
    parts.append(_text(_WIDTH / 2, _HEIGHT - 8, "size of the tensor of each process (bytes)", "middle"))
    places = [(across(point.size), up(point.bus)) for point in sweep]
    parts.append(f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
    if threshold.bus is not None:
        y = up(threshold.bus)
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT + 8, y - 6, f"threshold: {threshold.bus:.3g} GB/s", "start", "limits"))
    title = f"<title>Bus bandwidth over tensor size, at best {max(point.bus for point in sweep):.3g} GB/s</title>"
    return (
        f'<div class="wide"><svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{title}{"".join(parts)}</svg>'
        "</div>"
    )


def _ticks(top: float) -> Iterator[float]:
    """Yield round numbers from 0 up to the first that is not below the top."""
    power = 10 ** math.floor(math.log10(top / _MOST_TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if top / (power * factor) <= _MOST_TICKS)
    return (number * step for number in range(math.ceil(top / step) + 1))


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
