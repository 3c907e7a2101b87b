"""Picture of the lab's fleet: its nodes, with GPUs in the colors of those who hold them.

`make picture` records the fleet of a running lab in fleet.json, from which this is drawn.
"""

import json
from pathlib import Path
from typing import Any

from berth.components.core.words import counted
from docs.pictures.svg import LARGE, LINE, NORMAL, SMALL, WIDTH, Area, Picture, Style

RECORDED = Path(__file__).with_name("fleet.json")
"""Answer of `berth status -s lab --json`."""

_EDGE, _PAD, _GAP = 14, 12, 12
_COLORS = ("green", "blue", "pink", "amber", "teal", "violet", "red")
_SLOT, _PER_ROW = 20, 16


def recorded() -> dict[str, Any]:
    """Return the recorded fleet."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def draw() -> Picture:
    """Return the picture."""
    fleet = recorded()
    nodes = [node for node in fleet["nodes"] if node["gpus"]]
    names = sorted({holder["name"] for node in nodes for holder in node["holders"]})
    tones = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(names)}
    picture = Picture(
        f"Fleet of {fleet['environment']}",
        f"{counted(len(fleet['nodes']), 'node')} in {counted(len(fleet['pools']), 'pool')}; GPUs are held by"
        f" {', '.join(names)}.",
    )
    y = _head(picture, fleet)
    for pool in fleet["pools"]:
        y = _pool(picture, pool, [node for node in nodes if node["pool"] == pool["name"]], tones, y) + _GAP
    _legend(picture, fleet, tones, y)
    return picture


def _head(picture: Picture, fleet: dict[str, Any]) -> float:
    title = f"$ berth status -s {fleet['stack']}"
    return picture.text(_EDGE + 2, 16, title, Style(SMALL, "muted", mono=True)) + 8


def _pool(
    picture: Picture, pool: dict[str, Any], nodes: list[dict[str, Any]], tones: dict[str, str], top: float
) -> float:
    """Draw a pool with its nodes that have GPUs; return its lower edge."""
    below, x, room = picture.mark(), _EDGE + _PAD, WIDTH - 2 * (_EDGE + _PAD)
    y = picture.text(x, top + 9, f"pool {pool['name']}", Style(LARGE, bold=True))
    words = [f"{pool['nodes']} × {pool['machineType']}"]
    words += [f"{pool['gpusInUse']} of {counted(pool['gpus'], pool['unit'])} in use"] if pool["gpus"] else ["no GPUs"]
    words += [f"{pool['nicsInUse']} of {pool['nics']} RDMA NICs"] if pool["nics"] else []
    words += [pool["sharing"]] if pool["sharing"] else []
    picture.text(WIDTH - x, top + 12, " · ".join(words), Style(SMALL, "muted"), anchor="end", room=room - 150)
    width = (room - _GAP) / 2
    for first in range(0, len(nodes), 2):
        ends = [
            _node(picture, node, tones, Area(x + number * (width + _GAP), y + 4, width, 0))
            for number, node in enumerate(nodes[first : first + 2])
        ]
        y = max(ends) + 4
    bottom = y + 8
    picture.box(Area(_EDGE, top, WIDTH - 2 * _EDGE, bottom - top), "plain", below=below)
    return bottom


def _node(picture: Picture, node: dict[str, Any], tones: dict[str, str], area: Area) -> float:
    """Draw a node; return its lower edge."""
    below, x = picture.mark(), area.x + 10
    y = picture.text(x, area.y + 7, node["name"], Style(SMALL, mono=True), room=area.width - 20) + 3
    held = [tones[holder["name"]] for holder in node["holders"] for _ in range(holder["gpus"])]
    for number in range(node["gpus"]):
        row, column = divmod(number, _PER_ROW)
        slot = Area(x + column * _SLOT, y + row * _SLOT, _SLOT - 5, _SLOT - 5)
        taken = number < len(held)
        picture.box(slot, held[number] if taken else "plain", solid=taken, radius=3)
    y += -(-node["gpus"] // _PER_ROW) * _SLOT + 2
    parts = [f"{holder['name']} {holder['gpus']}" for holder in node["holders"]]
    parts += [f"{node['gpus'] - len(held)} free"] if len(held) < node["gpus"] else []
    y = picture.text(x, y, " · ".join(parts), Style(SMALL), room=area.width - 20) + 5
    picture.box(Area(area.x, area.y, area.width, y - area.y), "page", radius=6, below=below)
    return y


def _legend(picture: Picture, fleet: dict[str, Any], tones: dict[str, str], top: float) -> None:
    """Draw the berths and clusters with their state."""
    x = _EDGE + 2.0
    rays = [(ray, kind) for kind in ("berths", "clusters") for ray in fleet[kind]]
    for ray, kind in rays:
        text = f"{kind.removesuffix('s')} {ray['name']}: {ray['state']}"
        width = Style(SMALL).width(text) + 20 + NORMAL
        if x + width > WIDTH - _EDGE:
            x, top = _EDGE + 2.0, top + SMALL * LINE + 6
        picture.box(Area(x, top + 2, 11, 11), tones.get(ray["name"], "plain"), solid=True, radius=2)
        picture.text(x + 18, top, text, Style(SMALL))
        x += width + 8
