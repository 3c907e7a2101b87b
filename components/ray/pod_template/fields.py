"""Fields of a pod template's patch, checked against the types of the Kubernetes client."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from berth.components.core.merge import REMOVES
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import SettingPath
from berth.components.core.types import parse_quantity
from berth.components.ray.pod_template.merging import MERGED_LISTS, key_of_entries
from berth.components.ray.pod_template.refusals import refusal_of

FieldProblem = tuple[SettingPath, str]
"""Path of a field below the patch, and what is wrong there."""

_TEMPLATE_FIELDS: Mapping[str, Mapping[str, str]] = {
    "template": {"metadata": "metadata", "spec": "V1PodSpec"},
    "metadata": {
        "annotations": "Dict[str, str]",
        "labels": "Dict[str, str]",
        "name": "str",
        "namespace": "str",
        "finalizers": "List[str]",
    },
}
"""Fields of a template of KubeRay, which has less than the client's."""

_VALUES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "is not text; put it in quotes"),
    "int": ((int,), "is not a whole number"),
    "bool": ((bool,), "is neither true nor false"),
    "object": ((int, str), "is neither a whole number nor text"),
}
"""Types of values by the client's names; `object` is a port by number or by name."""

_NEVER_EMPTY = (("metadata",), ("spec",), ("spec", "containers"))
_QUANTITIES = ("limits", "requests", "sizeLimit", "divisor")


def field_problems(
    value: Any, kind: str = "template", path: SettingPath = ()
) -> Iterator[FieldProblem]:
    """Yield what is wrong with a part of a pod template.

    Args:
        value: the part as written.
        kind: name of its type in the Kubernetes client, or `template` for the whole.
        path: its path in the template.
    """
    if value is None:
        if path in _NEVER_EMPTY:
            yield path, "is empty; take it out"
        return
    refusal = refusal_of(path, value)
    if refusal:
        yield path, refusal
    elif kind in _VALUES:
        yield from _problems_of_value(value, kind, path)
    elif kind.startswith("List["):
        yield from _problems_of_list(value, kind.removeprefix("List[").removesuffix("]"), path)
    elif not isinstance(value, dict):
        yield path, f"{value!r} is not a mapping; write its keys on lines of their own"
    else:
        yield from _problems_of_mapping(value, kind, path)


def with_text_quantities(value: Any, path: SettingPath = ()) -> Any:
    """Return a part of a pod template with quantities as text, as Kubernetes has them."""
    if isinstance(value, list):
        return [with_text_quantities(entry, (*path, index)) for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, inner in value.items():
        where = (*path, key)
        is_number = isinstance(inner, int) and not isinstance(inner, bool)
        as_text = is_number and _is_quantity(where)
        result[key] = str(inner) if as_text else with_text_quantities(inner, where)
    return result


def _problems_of_mapping(
    value: Mapping[str, Any], kind: str, path: SettingPath
) -> Iterator[FieldProblem]:
    any_key = re.fullmatch(r"Dict\[str, (.*)\]", kind)
    fields = {} if any_key else _fields(kind)
    for key, inner in value.items():
        field = any_key[1] if any_key else fields.get(key)
        if field is not None:
            yield from field_problems(inner, field, (*path, key))
            continue
        # A field that no template has may still be one that berth refuses by name.
        refusal = refusal_of((*path, key), inner)
        unknown = f"unknown field {key!r} of a pod{did_you_mean(key, fields)}"
        yield (*path, key), refusal or unknown


def _problems_of_list(value: Any, kind: str, path: SettingPath) -> Iterator[FieldProblem]:
    if not isinstance(value, list):
        yield path, f"{value!r} is not a list; begin each entry with `- `"
        return
    field = str(path[-1])
    earlier: set[str] = set()
    for position, entry in enumerate(value):
        where = (*path, position)
        yield from _problems_of_entry(entry, kind, where)
        if isinstance(entry, dict) and field in MERGED_LISTS:
            yield from _problems_of_identity(entry, field, earlier, where)


def _problems_of_entry(entry: Any, kind: str, where: SettingPath) -> Iterator[FieldProblem]:
    """Yield what is wrong with an entry of a list, whatever entries are beside it."""
    if entry is None:
        yield where, "is empty; take it out"
        return
    if isinstance(entry, dict) and REMOVES in entry:
        if entry[REMOVES] not in (None, "delete"):
            at_directive = (*where, REMOVES)
            words = "is not a directive that berth has; write `$patch: delete`, or leave it out"
            yield at_directive, words
        entry = {key: inner for key, inner in entry.items() if key != REMOVES}
    yield from field_problems(entry, kind, where)


def _problems_of_identity(
    entry: Mapping[str, Any], field: str, earlier: set[str], where: SettingPath
) -> Iterator[FieldProblem]:
    """Yield what is wrong with the name by which an entry merges; it joins the `earlier` ones."""
    key = key_of_entries(field)
    if entry.get(key) is None:
        yield where, f"needs `{key}`, by which it is merged with other entries"
        return
    identity = repr(MERGED_LISTS[field](entry))
    if identity in earlier:
        yield where, f"has the `{key}` of an entry before it, {entry[key]!r}; write one of them"
    earlier.add(identity)


def _problems_of_value(value: Any, kind: str, path: SettingPath) -> Iterator[FieldProblem]:
    types, words = _VALUES[kind]
    if not isinstance(value, types) or (kind != "bool" and isinstance(value, bool)):
        yield path, f"{value!r} {words}"
    elif _is_quantity(path):
        try:
            parse_quantity(str(value))
        except ValueError as error:
            yield path, str(error)


def _is_quantity(path: SettingPath) -> bool:
    return path[-1] in _QUANTITIES or (len(path) > 1 and path[-2] in _QUANTITIES)


@cache
def _fields(kind: str) -> Mapping[str, str]:
    """Return the types of a model's fields by the names that they have in YAML."""
    if kind in _TEMPLATE_FIELDS:
        return _TEMPLATE_FIELDS[kind]
    from kubernetes.client import models  # noqa: PLC0415 - takes half a second, and few stacks have patches

    model = getattr(models, kind)
    return {name: model.openapi_types[attribute] for attribute, name in model.attribute_map.items()}
