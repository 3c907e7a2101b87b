"""Files that other programs read while the lab writes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def replace(path: Path, fill: Callable[[Path], object]) -> None:
    """Replace a file in one step, so that a reader finds the old or the new one, both complete.

    `fill` creates the new one under the temporary path that it is given.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    fill(partial)
    partial.replace(path)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file by one with this text."""

    def fill(partial: Path) -> None:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT, mode), "w") as file:
            file.write(text)

    replace(path, fill)
