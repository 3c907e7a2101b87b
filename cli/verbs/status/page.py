"""`berth status --html`: the fleet as one page to share."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from berth.cli.reach.fabric_reports import FabricReport, newest_reports
from berth.cli.reach.fleet_remarks import lifecycles_on, notes_on, reasons_on, restarts_on
from berth.cli.reach.fleet_tables import Grid, fleet_grids
from berth.cli.shell.console import err
from berth.components.core import whole_file
from berth.components.core.errors import BadInputError
from berth.components.core.page import html_document, html_list, html_table
from berth.components.core.words import counted
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.ray.live import Fleet, Node

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_COLORS = 8
"""Number of colors for the holders of GPUs in page.css: hues that differ in light and in dark."""
_MOST_SLOTS = 64
"""Largest number of boxes for the GPUs of one node; beyond it a number stands for them."""


def write_page(fleet: Fleet, to: Path) -> None:
    """Write the page of a fleet in one step, to a file, or to stdout for `-`.

    Raises:
        BadInputError: the file cannot be written.
    """
    now = datetime.now(UTC)
    if str(to) == "-":
        sys.stdout.write(fleet_page(fleet, now))
        return
    try:
        whole_file.replace_file(
            to, fleet_page(fleet, now, newest_reports(fleet.environment, to.parent))
        )
    except OSError as error:
        raise BadInputError(
            f"--html: {to} cannot be written: {error.strerror}; nothing was written",
            "name a file in a folder that exists and that you may write to",
        ) from None
    err.print(f"written: {to}")


def fleet_page(fleet: Fleet, now: datetime, proofs: Sequence[FabricReport] = ()) -> str:
    """Return the page of a fleet at a moment, with links to the reports of fabric proofs."""
    notes = [*notes_on(fleet), *reasons_on(fleet), *restarts_on(fleet, now)]
    state = '<span class="good">everything is ready</span>'
    if notes:
        state = f'<span class="warn">{counted(len(notes), "remark")}</span>'
    stack = "" if fleet.stack == fleet.environment else f" · stack {escape(fleet.stack)}"
    pools, *workloads = fleet_grids(fleet, now)
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
    remarks = list(lifecycles_on(fleet))
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
    names: set[str] = set()
    for node in nodes:
        names.update(holder.name for holder in node.holders)
    colors = {name: f"of{number % _COLORS}" for number, name in enumerate(sorted(names))}
    units = {pool.name: pool.gpu_unit for pool in fleet.pools}
    cards = "".join(_card(node, colors, units.get(node.pool, GpuUnit())) for node in nodes)
    return ["<h2>Nodes with GPUs</h2>", f'<div class="cards">{cards}</div>']


def _card(node: Node, colors: dict[str, str], unit: GpuUnit) -> str:
    boxes = []
    held = ""
    for holder in node.holders:
        color = colors[holder.name]
        boxes += [color] * holder.gpus
        held += (
            f'<span><span class="slot {color}"></span>{escape(holder.name)} {holder.gpus}</span>'
        )
    free = max(node.gpus - len(boxes), 0)
    boxes += [""] * free
    slots = "".join(f'<span class="slot {color}"></span>' for color in boxes[:_MOST_SLOTS])
    if len(boxes) > _MOST_SLOTS:
        slots += f'<span class="slot more">+{len(boxes) - _MOST_SLOTS}</span>'
    state = "" if node.ready else ' <span class="warn">not ready</span>'
    return (
        f'<div class="card"><strong>{escape(node.name)}</strong>{state}<div class="muted">pool'
        f" {escape(node.pool)}, {unit.brief(free, node.gpus)} free</div><div"
        f' class="slots">{slots}</div><div class="names">{held}</div></div>'
    )


def _proofs(proofs: Sequence[FabricReport]) -> list[str]:
    if not proofs:
        return []
    items = ""
    for proof in proofs:
        cluster = escape(proof.cluster)
        run = escape(proof.run)
        link = escape(quote(proof.link))
        counts = ", ".join(f"{count} {escape(verdict)}" for verdict, count in proof.counts.items())
        items += f'<li><a href="{link}">{cluster}, run {run}</a>: {counts}</li>'
    return ["<h2>Fabric proofs</h2>", f"<ul>{items}</ul>"]
