"""Files that berth ships for its users: pages, and the stacks and programs that pages link to."""

from pathlib import Path
from typing import Literal

SHIPPED = Path(__file__).parent.with_name("shipped")
"""Folder with the files, laid out as in berth's source tree: links there, files in a wheel."""

PATTERNS = (
    "README.md",
    "docs/*.md",
    "docs/ci/*.yml",
    "docs/programs/*.py",
    "images/*.md",
    "stacks/Pulumi.*.yaml",
    "stacks/gallery/Pulumi.*.yaml",
    "stacks/gallery/apps/*/*.py",
)
"""Patterns of the files' paths; pyproject.toml packs the same ones into a wheel."""

StartName = Literal["dev", "prod", "mixed", "solo"]
"""Stacks among the files with which a new repository can start."""


def shipped_files() -> list[str]:
    """Return the paths of all files, relative to SHIPPED."""
    found = {file for pattern in PATTERNS for file in SHIPPED.glob(pattern)}
    return sorted(file.relative_to(SHIPPED).as_posix() for file in found)


def shipped_text(path: str) -> str:
    """Return the text of a file by its path relative to SHIPPED."""
    return (SHIPPED / path).read_text(encoding="utf-8")
