"""Types of the values in a model of settings, by their path."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from berth.components.core.problems import SettingPath

_ANY = "*"
"""Part of a path that stands for any key or position."""


def has_setting(model: type[BaseModel], path: SettingPath) -> bool:
    """Return whether a model has a setting at a path, in which `*` is any key or position."""
    if not path:
        return True
    *above, key = path
    return any(types_of_part(outer, key) is not None for outer in types_at(model, tuple(above)))


def types_at(model: type[BaseModel], path: SettingPath) -> list[Any]:
    """Return the types that a value at a path may have: models, containers and plain types."""
    types: list[Any] = [model]
    for part in path:
        inner = [types_of_part(outer, part) or [] for outer in types]
        types = list(chain.from_iterable(inner))
    return types


def types_of_part(outer: Any, part: str | int) -> list[Any] | None:
    """Return the types of a part of a value; None where values of its type have no such part.

    Args:
        outer: type of the value.
        part: key or position; `*` is any.
    """
    if isinstance(outer, type) and issubclass(outer, BaseModel):
        return _types_of_field(outer, part)
    if outer is Any:
        return [Any]
    if get_origin(outer) is list or (get_origin(outer) is dict and part != "[key]"):
        return members_of(get_args(outer)[-1])
    return None


def _types_of_field(model: type[BaseModel], part: str | int) -> list[Any] | None:
    if part == _ANY:
        annotations = [field.annotation for field in model.model_fields.values()]
        return list(chain.from_iterable(map(members_of, annotations)))
    for name, field in model.model_fields.items():
        if part in (field.alias, name):
            return members_of(field.annotation)
    return None


def fields_of(model: Any) -> Mapping[str, FieldInfo]:
    """Return the fields of a model by their key in YAML; none for other types."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def examples_at(model: type[BaseModel], path: SettingPath) -> list[Any]:
    """Return the examples of the setting, or of the list's entry, at a path; none without any."""
    *above, key = path
    if isinstance(key, int):
        return [entry for example in examples_at(model, tuple(above)) for entry in example]
    for outer in types_at(model, tuple(above)):
        field = fields_of(outer).get(key)
        if field and field.examples:
            return field.examples
    return []


def members_of(annotation: Any) -> list[Any]:
    """Return the models and containers inside unions and Annotated."""
    if isinstance(annotation, type) or get_origin(annotation) in (dict, list):
        return [annotation]
    members: list[Any] = []
    for inner in get_args(annotation):
        members += members_of(inner)
    return members
