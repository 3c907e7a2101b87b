"""Writer of the lists in docs/lab.md: sources of the lab's modules, from their docstrings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from docs.inserted import inserted
from docs.sources import KINDS, Kind, Module, modules

PAGE = Path(__file__).with_name("lab.md")

_HEADINGS: dict[Kind, tuple[str, str]] = {
    "real": ("Real", "The program itself runs, built from its source, released by its project, or installed."),
    "recorded": ("Recorded", "The real program was run elsewhere, and tests compare the lab with what it did."),
    "read": ("Read", "The program's source, or its maker's page, says so; the lab was written after it."),
}


def lists(found: Iterable[Module]) -> str:
    """Return the three lists, as Markdown."""
    there = list(found)
    parts = []
    for kind in KINDS:
        heading, meaning = _HEADINGS[kind]
        lines = [
            f"- [{module.path}](../{module.path}): {source.text}"
            for module in there
            for source in module.sources
            if source.kind == kind
        ]
        parts.append("\n".join([f"## {heading}", "", meaning, "", *lines]))
    return "\n\n".join(parts)


def page() -> str:
    """Return the page's text, with its lists as they have to be."""
    return inserted(PAGE.read_text(encoding="utf-8"), lists(modules()))
