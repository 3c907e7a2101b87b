"""Writer of the lists in docs/lab.md: sources of the lab's modules, from their docstrings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from berth.lab.sources import KINDS, Kind, Module, modules

PAGE = Path(__file__).with_name("lab.md")
BEGIN, END = "<!-- `make lab-page` writes what follows -->", "<!-- end of what `make lab-page` writes -->"

_HEADINGS: dict[Kind, tuple[str, str]] = {
    "real": ("Real", "The program itself runs, built from its source or installed."),
    "recorded": ("Recorded", "The real program was run elsewhere, and tests compare the lab with what it did."),
    "read": ("Read", "The program's source, or its maker's page, says so; the lab was written after it."),
    "believed": ("Believed", "No source says so. Each line names what would settle it; do not rely on these."),
}


def lists(found: Iterable[Module]) -> str:
    """The four lists, as Markdown."""
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


def page(text: str, found: Iterable[Module]) -> str:
    """The page with its lists as they have to be.

    Args:
        text: the page as it is.
        found: modules of the lab.
    """
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{lists(found)}\n\n{END}{after}"


def main() -> int:
    """Write the page; the exit status."""
    found = modules()
    for module in found:
        if module.problem:
            sys.stderr.write(f"error: {module.path}: {module.problem}\n")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 2 if any(module.problem for module in found) else 0


if __name__ == "__main__":
    sys.exit(main())
