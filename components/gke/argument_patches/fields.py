"""Fields of a patch, checked against the schema of Google's provider."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import SettingPath
from berth.components.gke.argument_patches import own_fields
from berth.components.gke.field_rules import list_problems, value_problems
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL, Field, resource_fields

FieldProblem = tuple[SettingPath, str]
"""Path of a field below the patch, and what is wrong there."""

_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "": ((str,), "is not text; put it in quotes"),
    "bool": ((bool,), "is neither true nor false"),
    "int": ((int,), "is not a whole number"),
    "number": ((int, float), "is not a number"),
}
"""Python's types of a single value, by the field's type, with what is wrong about another one."""


@dataclass(frozen=True)
class PatchedType:
    """Type of resource that settings patch.

    Attributes:
        token: Pulumi's type of the resource.
        words: the resource in words.
        own: paths of fields that are berth's, with what to write in their place.
    """

    token: str
    words: str
    own: Mapping[str, str]

    def problems(self, patch: Mapping[str, Any]) -> Iterator[FieldProblem]:
        """Yield what is wrong with each field of a patch, whatever is beside it."""
        yield from self._block(patch, "", ())

    def _block(
        self, block: Mapping[str, Any], plain: str, path: SettingPath
    ) -> Iterator[FieldProblem]:
        facts = resource_fields()[self.token]
        names = facts.blocks.get(plain, ())
        for name, value in block.items():
            inside = f"{plain}.{name}" if plain else name
            here = (*path, name)
            if inside in self.own:
                yield here, f"is for berth to set; {self.own[inside]}"
            elif name not in names:
                where = f"`{plain}` of a {self.words}" if plain else f"a {self.words}"
                hint = did_you_mean(name, names)
                yield here, f"Google's provider has no field {name!r} in {where}{hint}"
            else:
                yield from self._field(value, facts.fields[inside], inside, here)

    def _field(
        self, value: Any, fact: Field, plain: str, path: SettingPath
    ) -> Iterator[FieldProblem]:
        is_block = plain in resource_fields()[self.token].blocks
        if value is None:
            yield path, "has no value; write one, or take the line out"
        elif fact.kind in ("list", "set"):
            yield from self._list(value, fact, plain, path)
        elif fact.kind == "map":
            yield from _map(value, path)
        elif not is_block:
            yield from _single(value, fact, path)
        elif isinstance(value, dict):
            yield from self._block(value, plain, path)
        else:
            yield path, f"{value!r} is not a mapping; write its fields on lines of their own"

    def _list(
        self, value: Any, fact: Field, plain: str, path: SettingPath
    ) -> Iterator[FieldProblem]:
        if not isinstance(value, list):
            yield path, f"{value!r} is not a list; begin each entry with `- `"
            return
        for _, reason in list_problems(str(path[-1]), fact, value):
            yield path, _refused(reason)
        is_of_blocks = plain in resource_fields()[self.token].blocks
        for position, entry in enumerate(value):
            here = (*path, position)
            if not is_of_blocks:
                yield from _typed(entry, "", here)
            elif isinstance(entry, dict):
                yield from self._block(entry, plain, here)
            else:
                yield here, f"{entry!r} is not a mapping; write its fields on lines of their own"


CLUSTERS = PatchedType(CLUSTER, "cluster", own_fields.CLUSTER)
"""Clusters that settings patch."""

POOLS = PatchedType(NODE_POOL, "node pool", own_fields.POOL)
"""Node pools that settings patch."""


def _map(value: Any, path: SettingPath) -> Iterator[FieldProblem]:
    if not isinstance(value, dict):
        yield path, f"{value!r} is not a mapping; write its keys on lines of their own"
        return
    for key, inner in value.items():
        yield from _typed(inner, "", (*path, key))


def _single(value: Any, fact: Field, path: SettingPath) -> Iterator[FieldProblem]:
    wrong_type = list(_typed(value, fact.type, path))
    if wrong_type:
        yield from wrong_type
        return
    for _, reason in value_problems(str(path[-1]), fact, value):
        yield path, _refused(reason)


def _typed(value: Any, kind: str, path: SettingPath) -> Iterator[FieldProblem]:
    types, words = _TYPES[kind]
    is_fitting = isinstance(value, types) and (kind == "bool" or not isinstance(value, bool))
    if not is_fitting:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        yield path, f"{shown} {words}"


def _refused(reason: str) -> str:
    return f"{reason}, which Google's provider refuses; write another value"
