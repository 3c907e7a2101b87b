"""Pictures of the pages, drawn from berth's own settings, manifests and plans.

Belongs here: one module for each picture with `draw`, and the few shapes that they share (svg.py).
Does not belong here: facts. A picture reads them where berth has them, so that it stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.pictures import architecture
from docs.pictures.svg import Picture

FOLDER = Path(__file__).parent

PICTURES: Mapping[str, Callable[[], Picture]] = {
    "architecture": architecture.draw,
}
"""Pictures by the name of their file."""


def drawn() -> dict[Path, str]:
    """Return the files of all pictures with their content."""
    return {FOLDER / f"{name}.svg": draw().svg() for name, draw in PICTURES.items()}
