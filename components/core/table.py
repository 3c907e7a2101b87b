"""Rules of settings as rows of a table: contradictions that need no code of their own.

A row has `at`, the setting that is wrong, `says`, what is wrong and what fixes it, and `when`, the
values with which it is. A value is a text or number, a list of those of which one fits, or true or
false for one that is given or not. `rests_on` names other settings that the row comes from. Rows
stand alone, or as `rules` of a group, which has what all of them have. Names in `when`, and in
braces in `says`, lead from an object to its attributes: `pool.machine.name`; `{key}` is the last
key of `at`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from berth.components.core.problems import Path, Problem

Row = Mapping[str, Any]


def rows_of(table: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of a table, those of groups with what the group has."""
    for group in table:
        for row in group.get("rules", [group]):
            yield {**group, **row, "when": {**group.get("when", {}), **row["when"]}}


def broken(table: Sequence[Row], path: Path, **objects: Any) -> Iterator[Problem]:
    """Yield the problems of the rows that fit some objects.

    Args:
        table: the table, as its file has it.
        path: path of the settings that `at` is in; one that begins with `environment.` is whole.
        objects: objects by the names that the table has for them.
    """
    known = SimpleNamespace(**objects)
    for row in rows_of(table):
        if all(_fits(attrgetter(name)(known), wanted) for name, wanted in row["when"].items()):
            rests_on = tuple(_path(other, path) for other in row.get("rests_on", ()))
            at = _path(row["at"], path)
            yield Problem(at, row["says"].format_map({**objects, "key": at[-1]}), rests_on)


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, bool):
        return bool(value) is wanted
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


def _path(name: str, below: Path) -> Path:
    parts = tuple(name.split("."))
    return parts if parts[0] == "environment" else (*below, *parts)
