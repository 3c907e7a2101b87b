"""lab/sources.md: lists of the sources of the lab's modules, from their docstrings."""

from collections.abc import Iterable

from docs.sources import KINDS, Kind, Module, modules

_HEAD = """\
# Sources of the lab

What each module of `lab/` answers to. Each module ends its docstring with lines such as
`Answers to (read): …`, or says that it simulates nothing; a test names every module that does
neither. `make pages` writes this page. Whoever changes what a module simulates changes its line.

"""
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
    """Return the page's text."""
    return f"{_HEAD}{lists(modules())}\n"
