"""Figures of docs/proven.md, from the recorded benchmark and the recorded campaign of faults."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.bars import measured
from berth.lab.home import CLONE
from docs.inserted import inserted
from docs.pictures.performance import figures

PAGE = Path(__file__).with_name("proven.md")
CAMPAIGN = CLONE / "docs/reliability.json"

_SIZES = ("10", "100")
_WAYS = {"": "berth", "same program: ": "plain `pulumi up`", "floor: ": "kubectl"}
_UPDATES = {
    "up": "first update",
    "no-op": "no changes",
    "one more": "one berth more",
    "destroy": "removal",
}


def page() -> str:
    """Return the page's text, with its figures as they have to be."""
    parts = json.loads(CAMPAIGN.read_text(encoding="utf-8"))
    lines = [
        "### Performance",
        "",
        *_performance(figures()),
        "",
        "### Reliability",
        "",
        *_reliability(parts),
    ]
    return inserted(PAGE.read_text(encoding="utf-8"), "\n".join(lines))


def _performance(parts: Mapping[str, Any]) -> Iterator[str]:
    runs = [parts["environment"][size] for size in _SIZES]
    yield (
        "![Seconds by number of engineers, for berth, kubectl, Helm and plain"
        " Pulumi](pictures/performance.svg)"
    )
    yield ""
    yield f"| seconds with {' and '.join(_SIZES)} engineers | {' | '.join(_WAYS.values())} |"
    yield f"|---|{'---|' * len(_WAYS)}"
    for update, name in _UPDATES.items():
        cells = []
        for way in _WAYS:
            seconds = [f"{run['seconds'][way + update]:.3g}" for run in runs]
            cells.append(" and ".join(seconds))
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    check = parts["check"]["1000"]
    status = parts["status"]["1000"]
    yield f"- A berth is {runs[-1]['facts']['state kB a berth']:.0f} kB of Pulumi's state."
    yield f"- With 1,000 engineers: `berth check` {check['seconds']['check']:.1f} s, `berth status`"
    yield (
        f"  {status['seconds']['status, all ready']:.1f} s, a pass of the keeper"
        f" {status['seconds']['keeper']:.1f} s."
    )
    yield from _missed(parts)
    dates = sorted({run["date"] for of_part in parts.values() for run in of_part.values()})
    yield f"- Recorded {', '.join(dates)} on {runs[-1]['machine']['cores']} cores."


def _missed(parts: Mapping[str, Any]) -> Iterator[str]:
    found = [
        (size, figure)
        for name, runs in parts.items()
        for size, run in runs.items()
        for figure in measured(name, int(size), run)
    ]
    late = [f"with {int(size):,} engineers, {figure}" for size, figure in found if not figure.good]
    yield (
        f"- {len(found) - len(late)} of {len(found)} bars are reached. Missed:"
        f" {'; '.join(late) or 'none'}."
    )


def _reliability(parts: Mapping[str, Any]) -> Iterator[str]:
    yield "| disturbance | a good case | good |"
    yield "|---|---|---|"
    for part in parts.values():
        yield f"| {part['title']} | {part['good_case']} | {part['good']:,} of {part['cases']:,} |"
    yield ""
    missing = [
        f"`{name}` {part['cases']:,} of {part['full']:,}"
        for name, part in parts.items()
        if _short(part)
    ]
    if missing:
        yield f"Shorter than a full campaign: {', '.join(missing)}."


def _short(part: Mapping[str, Any]) -> bool:
    return bool(part["cases"] < part["full"])
