"""`berth status --html`: the fleet as one page to share."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from berth.cli.reach.fabric_reports import newest
from berth.cli.reach.fleet import Grid, grids, notes_on, reasons_on
from berth.cli.reach.lifecycle import sentences
from berth.cli.shell.console import err
from berth.components.core import whole_file
from berth.components.core.errors import BadInputError
from berth.components.core.page import html_document, html_list, html_table
from berth.components.core.words import counted
from berth.components.ray.fleet import Fleet
from berth.components.ray.nodes import Node

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_COLORS = 8
"""Number of colors for the holders of GPUs in page.css: hues that differ in light and in dark."""
_MOST_SLOTS = 64
"""Largest number of boxes for the GPUs of one node; beyond it a number stands for them."""


def write(fleet: Fleet, to: Path) -> None:
    """Write the page of a fleet in one step, to a file, or to stdout for `-`."""
    now = datetime.now(UTC)
    if str(to) == "-":
        sys.stdout.write(page(fleet, now))
        return
    try:
        whole_file.replace_file(to, page(fleet, now, newest(fleet.environment, to.parent)))
    except OSError as error:
        raise BadInputError(
            f"--html: {to} cannot be written: {error.strerror}; nothing was written. Name a file in"
            " a folder that exists and that you may write to"
        ) from None
    err.print(f"written: {to}")


def page(fleet: Fleet, now: datetime, proofs: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the page of a fleet at a moment, with links to the reports of fabric proofs."""
    notes = [*notes_on(fleet), *reasons_on(fleet)]
    state = '<span class="good">everything is ready</span>'
    if notes:
        state = f'<span class="warn">{counted(len(notes), "remark")}</span>'
    stack = "" if fleet.stack == fleet.environment else f" · stack {escape(fleet.stack)}"
    pools, *workloads = grids(fleet, now)
    parts = [
        f"<p>{state}{stack}</p>",
        (
            f'<p class="muted">Snapshot of {now:%Y-%m-%d %H:%M} UTC by berth status; later changes'
            " are not in it.</p>"
        ),
        html_list(notes),
        _section(pools),
        *_nodes(fleet),
        *map(_section, workloads),
        *_proofs(proofs),
    ]
    remarks = [
        sentence
        for ray in (*fleet.berths, *fleet.clusters)
        for sentence in sentences(ray.name, ray.life)
    ]
    if remarks:
        parts += ["<h2>Lifecycle</h2>", html_list(remarks)]
    return html_document(f"Fleet of {fleet.environment}", filter(None, parts), _STYLE)


def _section(grid: Grid) -> str:
    return f"<h2>{escape(grid.title.capitalize())}</h2>{html_table(grid.heads, grid.rows)}"


def _nodes(fleet: Fleet) -> list[str]:
    """Return the nodes with GPUs as cards, whose boxes have the colors of the holders."""
    nodes = [node for node in fleet.nodes if node.gpus or node.holders]
    if not nodes:
        return []
    names = sorted({holder.name for node in nodes for holder in node.holders})
    colors = {name: f"of{number % _COLORS}" for number, name in enumerate(names)}
    units = {pool.name: pool.unit for pool in fleet.pools}
    cards = "".join(_card(node, colors, units.get(node.pool, "GPU")) for node in nodes)
    return ["<h2>Nodes with GPUs</h2>", f'<div class="cards">{cards}</div>']


def _card(node: Node, colors: dict[str, str], unit: str) -> str:
    taken = sum(holder.gpus for holder in node.holders)
    free = max(node.gpus - taken, 0)
    boxes = [colors[holder.name] for holder in node.holders for _ in range(holder.gpus)] + [
        ""
    ] * free
    slots = "".join(f'<span class="slot {color}"></span>' for color in boxes[:_MOST_SLOTS])
    if len(boxes) > _MOST_SLOTS:
        slots += f'<span class="slot more">+{len(boxes) - _MOST_SLOTS}</span>'
    held = "".join(
        f'<span><span class="slot {colors[holder.name]}"></span>{escape(holder.name)}'
        f" {holder.gpus}</span>"
        for holder in node.holders
    )
    state = "" if node.ready else ' <span class="warn">not ready</span>'
    return (
        f'<div class="card"><strong>{escape(node.name)}</strong>{state}<div class="muted">pool'
        f" {escape(node.pool)}, {free} of {counted(node.gpus, unit)} free</div><div"
        f' class="slots">{slots}</div><div class="names">{held}</div></div>'
    )


def _proofs(proofs: Sequence[Mapping[str, Any]]) -> list[str]:
    if not proofs:
        return []
    items = ""
    for proof in proofs:
        cluster, run, link = (
            escape(str(proof["cluster"])),
            escape(str(proof["run"])),
            escape(quote(proof["link"])),
        )
        counts = ", ".join(
            f"{count} {escape(verdict)}" for verdict, count in proof["counts"].items()
        )
        items += f'<li><a href="{link}">{cluster}, run {run}</a>: {counts}</li>'
    return ["<h2>Fabric proofs</h2>", f"<ul>{items}</ul>"]
