"""Report of a fabric proof as HTML: verdicts, causes, the plot, traffic and versions. Pure."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from html import escape

from berth.components.proof.fabric.evidence import Evidence, Point
from berth.components.proof.fabric.run import Found
from berth.components.proof.fabric.verdicts import Threshold, readable

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #ddd; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.pass { color: #146c2e } .fail { color: #b3261e; font-weight: 600 }
.simulated { color: #0b57d0 } .skipped { color: #6b6b6b }
code { background: #f2f2f2; padding: 0.1rem 0.3rem; overflow-wrap: anywhere }
svg { max-width: 100%; height: auto }
"""


def page(title: str, run: str, found: Found, threshold: Threshold) -> str:
    """Return the page of a run; it loads nothing from elsewhere."""
    parts = [f"<h1>{escape(title)}</h1>", f"<p>run {escape(run)}</p>", "<h2>Verdicts</h2>", _verdicts(found)]
    if found.causes:
        items = "".join(
            f"<li>{escape(cause.text)}<br>look: <code>{escape(cause.look)}</code></li>" for cause in found.causes
        )
        parts.append(f"<h2>Likely causes, the likeliest first</h2><ol>{items}</ol>")
    if found.evidence:
        if found.evidence.sweep:
            parts += ["<h2>Bandwidth</h2>", plot(found.evidence.sweep, threshold), _sweep(found.evidence.sweep)]
        parts += ["<h2>Traffic</h2>", _traffic(found.evidence), "<h2>Versions</h2>", _versions(found)]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def plot(sweep: Sequence[Point], threshold: Threshold) -> str:
    """Return the plot of bus bandwidth over tensor size, with the threshold, as SVG."""
    # Slow to import, and only a report needs them.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415

    # Texts stay texts, and the same numbers give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "berth", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8.5, 4.2), layout="constrained")
        axes = figure.subplots()
        axes.plot([point.size for point in sweep], [point.bus for point in sweep], marker="o", label="bus bandwidth")
        if threshold.bus is not None:
            axes.axhline(threshold.bus, color="#b3261e", linestyle="--", label=f"threshold: {threshold.bus:.3g} GB/s")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(round(value))))
        axes.set_xlabel("size of the tensor of each process (bytes)")
        axes.set_ylabel("bus bandwidth (GB/s)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(loc="upper left")
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    text = drawn.getvalue()
    return text[text.index("<svg") :]


def _verdicts(found: Found) -> str:
    rows = [
        f'<tr><td>{escape(check.name)}</td><td class="{check.verdict}">{check.verdict}</td>'
        f"<td>{escape(check.evidence)}</td></tr>"
        for check in found.checks
    ]
    return _table(("check", "verdict", "evidence"), rows)


def _sweep(sweep: Iterable[Point]) -> str:
    rows = [
        _row(
            readable(point.size),
            str(point.iterations),
            f"{point.seconds * 1e6:,.0f}",
            f"{point.algorithm:.3g}",
            f"{point.bus:.3g}",
        )
        for point in sweep
    ]
    return _table(("size", "iterations", "time (µs)", "algorithm bandwidth (GB/s)", "bus bandwidth (GB/s)"), rows)


def _traffic(evidence: Evidence) -> str:
    if not evidence.traffic:
        return "<p>none was counted</p>"
    rows = []
    for pod in evidence.traffic:
        for moved in (*pod.nics, *(moved for moved in pod.interfaces if moved.name == pod.main)):
            kind = "the pods' own network" if moved.name == pod.main else "claimed NIC"
            rows.append(_row(pod.pod, moved.name, kind, readable(moved.sent), readable(moved.received)))
    return _table(("pod", "interface", "what it is", "sent", "received"), rows)


def _versions(found: Found) -> str:
    evidence = found.evidence
    if evidence is None:
        return ""
    rows = {("Ray", evidence.ray)}
    for rank in evidence.ranks:
        rows |= {
            ("torch", rank.torch),
            ("GPU", rank.device),
            ("NVIDIA's driver", rank.driver),
            ("CUDA that torch was built for", rank.cuda),
            ("NCCL that torch was built with", rank.nccl_built),
            ("NCCL that is loaded", rank.nccl_loaded),
        }
    if found.findings:
        rows |= {("gIB", log.gib) for log in found.findings.logs}
    return _table(("what", "version"), [_row(*row) for row in sorted(rows) if row[1]])


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
