"""Report of a fabric proof as HTML: verdicts, causes, the plot, traffic and versions. Pure."""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from berth.components.core.page import html_document, html_table
from berth.components.proof.fabric.evidence import FabricEvidence, Point
from berth.components.proof.fabric.nccl_log import ProcessLog
from berth.components.proof.fabric.run import FabricResult
from berth.components.proof.fabric.sizes import readable_bytes
from berth.components.proof.fabric.threshold import Threshold

_STYLE = Path(__file__).with_name("plot.css")
"""Rules of a page that has the plot."""

# Sizes of the plot, and of its margins.
_WIDTH = 680
_HEIGHT = 330
_LEFT = 60
_RIGHT = 20
_TOP = 30
_BOTTOM = 50
_MOST_TICKS = 6


def report_page(title: str, run: str, result: FabricResult, threshold: Threshold) -> str:
    """Return the page of a run; it loads nothing from elsewhere."""
    parts = [
        f'<p class="muted">run {escape(run)} of berth verify fabric</p>',
        "<h2>Verdicts</h2>",
        _verdicts(result),
    ]
    if result.causes:
        items = "".join(
            f"<li>{escape(cause.text)}<br>look: <code>{escape(cause.look)}</code></li>"
            for cause in result.causes
        )
        parts.append(f"<h2>Likely causes, the likeliest first</h2><ol>{items}</ol>")
    if result.evidence:
        if result.evidence.sweep:
            parts += [
                "<h2>Bandwidth</h2>",
                _plot(result.evidence.sweep, threshold),
                _sweep(result.evidence.sweep),
            ]
        parts += ["<h2>NCCL's environment</h2>", _environment(result.evidence)]
        parts += ["<h2>Traffic</h2>", _traffic(result.evidence), "<h2>Versions</h2>"]
        parts.append(_versions(result.evidence, result.findings.logs if result.findings else ()))
    return html_document(title, parts, _STYLE.read_text(encoding="utf-8"))


def _verdicts(result: FabricResult) -> str:
    rows = [(check.name, (check.verdict, check.verdict), check.evidence) for check in result.checks]
    return html_table(("check", "verdict", "evidence"), rows)


def _sweep(sweep: Iterable[Point]) -> str:
    rows = [
        (
            readable_bytes(point.size),
            str(point.iterations),
            f"{point.seconds * 1e6:,.0f}",
            f"{point.algorithm:.3g}",
            f"{point.bus:.3g}",
        )
        for point in sweep
    ]
    return html_table(
        ("size", "iterations", "time (µs)", "algorithm bandwidth (GB/s)", "bus bandwidth (GB/s)"),
        rows,
    )


def _traffic(evidence: FabricEvidence) -> str:
    if not evidence.traffic:
        return "<p>none was counted</p>"
    rows = []
    for pod in evidence.traffic:
        main = {name: moved for name, moved in pod.interfaces.items() if name == pod.main}
        for name, moved in (pod.nics | main).items():
            kind = "the pods' own network" if name in main else "claimed NIC"
            rows.append(
                (pod.pod, name, kind, readable_bytes(moved.sent), readable_bytes(moved.received))
            )
    return html_table(("pod", "interface", "what it is", "sent", "received"), rows)


def _environment(evidence: FabricEvidence) -> str:
    """Return each variable of any process, beside the value of gIB's script."""
    rows: set[tuple[str, str, str]] = set()
    for rank in evidence.ranks:
        script = rank.script or {}
        for name in (*rank.environment, *script):
            rows.add((name, rank.environment.get(name, ""), script.get(name, "")))
    return html_table(("variable", "in the pods", "of set_nccl_env.sh"), sorted(rows))


def _versions(evidence: FabricEvidence, logs: Iterable[ProcessLog]) -> str:
    rows = {("Ray", evidence.ray)}
    for rank in evidence.ranks:
        rows |= {
            ("torch", rank.torch or ""),
            ("GPU", rank.device),
            ("NVIDIA's driver", rank.driver),
            ("CUDA that torch was built for", rank.cuda),
            ("NCCL that torch was built with", rank.nccl_built),
            ("NCCL that is loaded", rank.nccl_loaded),
        }
    rows |= {("gIB", log.gib) for log in logs}
    return html_table(("what", "version"), [row for row in sorted(rows) if row[1]])


def _plot(sweep: Sequence[Point], threshold: Threshold) -> str:
    """Return the plot of a sweep."""
    shown = [point.bus for point in sweep]
    if threshold.bus is not None:
        shown.append(threshold.bus)
    ticks = list(_ticks((max(shown) or 1) * 1.05))
    first = math.log2(sweep[0].size)
    last = math.log2(sweep[-1].size)

    def across(size: float) -> float:
        share = (math.log2(size) - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(bandwidth: float) -> float:
        return _HEIGHT - _BOTTOM - bandwidth / ticks[-1] * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_text(_LEFT - 8, 18, "bus bandwidth (GB/s)", "start")]
    for tick in ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(tick):.1f}"'
            f' y2="{up(tick):.1f}"/>'
        )
        parts.append(_text(_LEFT - 8, up(tick) + 4, f"{tick:g}", "end"))
    powers = range(math.ceil(first), math.floor(last) + 1, max(2, 2 * round((last - first) / 20)))
    parts += [
        _text(across(2**power), _HEIGHT - _BOTTOM + 20, readable_bytes(2**power), "middle")
        for power in powers
    ]
    parts.append(
        _text(_WIDTH / 2, _HEIGHT - 8, "size of the tensor of each process (bytes)", "middle")
    )
    places = [(across(point.size), up(point.bus)) for point in sweep]
    parts.append(
        f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'
    )
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
    if threshold.bus is not None:
        y = up(threshold.bus)
        parts.append(
            f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            _text(_LEFT + 8, y - 6, f"threshold: {threshold.bus:.3g} GB/s", "start", "limits")
        )
    title = (
        f"<title>Bus bandwidth over tensor size, at best {max(point.bus for point in sweep):.3g}"
        " GB/s</title>"
    )
    return (
        f'<div class="wide"><svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' role="img">{title}{"".join(parts)}</svg></div>'
    )


def _ticks(top: float) -> Iterator[float]:
    """Yield round numbers from 0 up to the first that is not below the top."""
    power = 10 ** math.floor(math.log10(top / _MOST_TICKS))
    step = next(
        power * factor for factor in (1, 2, 5, 10, 20) if top / (power * factor) <= _MOST_TICKS
    )
    return (number * step for number in range(math.ceil(top / step) + 1))


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
