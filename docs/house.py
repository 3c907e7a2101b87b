"""Picture of the house: rooms and the imports between them, as a Mermaid diagram of a page."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

from docs.inserted import inserted

PAGE = Path(__file__).parent / "project/house.md"

_PACKAGE = "berth"
_COMPONENTS = f"{_PACKAGE}.components"

Imports = Mapping[str, frozenset[str]]
"""Rooms that a room imports, by module."""


def imports_of_rooms() -> Imports:
    """Return what each room imports: the folders of components, and those beside it."""
    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    beside = graph.find_children(_PACKAGE) - {_COMPONENTS}
    rooms = sorted({*graph.find_children(_COMPONENTS), *beside})
    return {
        room: frozenset(
            other
            for other in rooms
            if other != room
            and graph.direct_import_exists(importer=room, imported=other, as_packages=True)
        )
        for room in rooms
    }


def without_detours(imports: Imports) -> Imports:
    """Return the imports without those that lead through another import too.

    Raises:
        ValueError: rooms import each other in a circle.
    """
    reached: dict[str, set[str]] = {}
    for room in _from_the_ground(imports):
        reached[room] = set(imports[room]).union(*(reached[other] for other in imports[room]))
    return {
        room: frozenset(
            other for other in others if not any(other in reached[between] for between in others)
        )
        for room, others in imports.items()
    }


def _from_the_ground(imports: Imports) -> Iterator[str]:
    """Yield the rooms, each after all that it imports."""
    left = dict(imports)
    while left:
        ready = [room for room, others in left.items() if not others & left.keys()]
        if not ready:
            raise ValueError(f"these rooms import each other: {', '.join(sorted(left))}")
        for room in ready:
            del left[room]
        yield from ready


def diagram(imports: Imports) -> str:
    """Return a Mermaid diagram of rooms, with arrows to what they import."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {_name(room)}["<b>{_name(room)}</b><br/>{_subject(room)}"]' for room in imports]
    for room, others in imports.items():
        lines += [f"    {_name(room)} --> {_name(other)}" for other in sorted(others)]
    return "\n".join([*lines, "```"])


def page() -> str:
    """Return the page's text, with the diagram as it has to be."""
    drawn = diagram(without_detours(imports_of_rooms()))
    return inserted(PAGE.read_text(encoding="utf-8"), drawn)


def _name(room: str) -> str:
    return room.rsplit(".", 1)[-1]


def _subject(room: str) -> str:
    """Return the subject of a room: the first line of its docstring."""
    first = (importlib.import_module(room).__doc__ or "").strip().partition("\n")[0]
    return first.rstrip(".").replace('"', "'")
