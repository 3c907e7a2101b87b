"""Rules of settings as rows of a table: contradictions that need no code of their own.

A row has `at`, the setting that is wrong (if left out, the one that is judged), `says`, what is
wrong and what fixes it, and `when`, the values with which it is. A value is a text or number, a
list of those of which one fits, true or false for one that is given or not, or comparisons of a
given one: `{over: pool.per_node}`, `{under: 20}`, `{lacks: SYSTEM}`, `{unlike: "[a-z]+"}`.
`rests_on` names other settings that the row comes from. Rows stand alone, or as `rules` of a group,
which has what all of them have; a group with `first: true` ends with the first row that fits. Names
in `when`, and in braces in texts, lead from an object to its attributes: `pool.machine.name`; in
`says`, `{key}` is the last key of `at`, and `{names:and}` a list in words.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import attrgetter
from string import Formatter
from types import SimpleNamespace
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.words import names_in_words

Row = Mapping[str, Any]

_WITH_TEXTS: Mapping[str, Callable[[Any, str], bool]] = {
    "has": operator.contains,
    "lacks": lambda value, text: bool(value) and text not in value,
    "like": lambda value, form: re.fullmatch(form, value) is not None,
    "unlike": lambda value, form: re.fullmatch(form, value) is None,
}
_WITH_OTHERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "over": operator.gt,
    "under": operator.lt,
    "other_than": operator.ne,
    "not_among": lambda value, others: value not in others,
}


@cache
def beside(module: str) -> Any:
    """Return the tables in contradictions.yaml beside a module, by the module's file."""
    return fast_yaml.load_beside(module, "contradictions.yaml")


def rows_of(group: Row) -> Iterator[Row]:
    """Yield the rows of a group with what the group has; a row alone is its own group."""
    for row in group.get("rules", [group]):
        yield {**group, **row, "when": {**group.get("when", {}), **row.get("when", {})}}


def broken(table: Sequence[Row], path: SettingPath, **objects: Any) -> Iterator[Problem]:
    """Yield the problems of the rows that fit some objects, by the names that the table has.

    `path` leads to the settings that `at` is in; one that begins with `environment.` is whole.
    """
    known = SimpleNamespace(**objects)

    def fits(name: str, wanted: Any) -> bool:
        value = attrgetter(name)(known)
        if isinstance(wanted, Mapping):
            return all(compares(value, how, other) for how, other in wanted.items())
        if isinstance(wanted, bool):
            return bool(value) is wanted
        return value in wanted if isinstance(wanted, list) else bool(value == wanted)

    def compares(value: Any, how: str, other: Any) -> bool:
        if value is None:
            return False
        if how in _WITH_TEXTS:
            return _WITH_TEXTS[how](value, other)
        return _WITH_OTHERS[how](
            value, attrgetter(other)(known) if isinstance(other, str) else other
        )

    for group in table:
        fitting = (
            row
            for row in rows_of(group)
            if all(fits(*condition) for condition in row["when"].items())
        )
        for row in islice(fitting, 1) if group.get("first") else fitting:
            at, *rests_on = (
                _path(name, path, objects) for name in (row.get("at", ""), *row.get("rests_on", ()))
            )
            yield Problem(
                at, _Words().vformat(row["says"], (), {**objects, "key": at[-1]}), tuple(rests_on)
            )


class _Words(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value in a text; with `and`, `or` or a comma a list in words."""
        if format_spec == ",":
            return ", ".join(map(str, value))
        if format_spec in ("and", "or"):
            return names_in_words(value, format_spec)
        return str(super().format_field(value, format_spec))


def _path(name: str, below: SettingPath, objects: Mapping[str, Any]) -> SettingPath:
    parts = tuple(filter(None, name.format_map(objects).split(".")))
    return parts if parts[:1] == ("environment",) else (*below, *parts)
