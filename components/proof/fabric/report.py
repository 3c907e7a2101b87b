"""Report of a fabric proof as HTML: verdicts, causes, the plot, traffic and versions. Pure."""

from collections.abc import Iterable
from html import escape

from berth.components.core.page import document, table
from berth.components.proof.fabric.evidence import Evidence, Point
from berth.components.proof.fabric.plot import STYLE, plot
from berth.components.proof.fabric.run import Found
from berth.components.proof.fabric.verdicts import Threshold, readable


def page(title: str, run: str, found: Found, threshold: Threshold) -> str:
    """Return the page of a run; it loads nothing from elsewhere."""
    parts = [f'<p class="muted">run {escape(run)} of berth verify fabric</p>', "<h2>Verdicts</h2>", _verdicts(found)]
    if found.causes:
        items = "".join(
            f"<li>{escape(cause.text)}<br>look: <code>{escape(cause.look)}</code></li>" for cause in found.causes
        )
        parts.append(f"<h2>Likely causes, the likeliest first</h2><ol>{items}</ol>")
    if found.evidence:
        if found.evidence.sweep:
            parts += ["<h2>Bandwidth</h2>", plot(found.evidence.sweep, threshold), _sweep(found.evidence.sweep)]
        parts += ["<h2>NCCL's environment</h2>", _environment(found.evidence)]
        parts += ["<h2>Traffic</h2>", _traffic(found.evidence), "<h2>Versions</h2>", _versions(found)]
    return document(title, parts, STYLE.read_text(encoding="utf-8"))


def _verdicts(found: Found) -> str:
    rows = [(check.name, (check.verdict, check.verdict), check.evidence) for check in found.checks]
    return table(("check", "verdict", "evidence"), rows)


def _sweep(sweep: Iterable[Point]) -> str:
    rows = [
        (
            readable(point.size),
            str(point.iterations),
            f"{point.seconds * 1e6:,.0f}",
            f"{point.algorithm:.3g}",
            f"{point.bus:.3g}",
        )
        for point in sweep
    ]
    return table(("size", "iterations", "time (µs)", "algorithm bandwidth (GB/s)", "bus bandwidth (GB/s)"), rows)


def _traffic(evidence: Evidence) -> str:
    if not evidence.traffic:
        return "<p>none was counted</p>"
    rows = []
    for pod in evidence.traffic:
        main = {name: moved for name, moved in pod.interfaces.items() if name == pod.main}
        for name, moved in (pod.nics | main).items():
            kind = "the pods' own network" if name in main else "claimed NIC"
            rows.append((pod.pod, name, kind, readable(moved.sent), readable(moved.received)))
    return table(("pod", "interface", "what it is", "sent", "received"), rows)


def _environment(evidence: Evidence) -> str:
    """Return each variable of any process, beside the value of gIB's script."""
    rows = {
        (name, rank.environment.get(name, ""), (rank.script or {}).get(name, ""))
        for rank in evidence.ranks
        for name in (*rank.environment, *(rank.script or {}))
    }
    return table(("variable", "in the pods", "of set_nccl_env.sh"), sorted(rows))


def _versions(found: Found) -> str:
    evidence = found.evidence
    if evidence is None:
        return ""
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
    if found.findings:
        rows |= {("gIB", log.gib) for log in found.findings.logs}
    return table(("what", "version"), [row for row in sorted(rows) if row[1]])
