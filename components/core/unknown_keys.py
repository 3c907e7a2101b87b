"""Hint for an unknown key of settings: the key that was meant.

That is a key here, above or below, or one for another tool's word.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from berth.components.core.model_types import fields_of, members_of, types_at
from berth.components.core.nearest import did_you_mean, similar_name
from berth.components.core.problems import SettingPath
from berth.components.core.settings import Settings

_LIKENESS = 0.75
"""Likeness from which a key is taken for a misspelled one of a model inside."""


def hint_for_key(key: str, value: object, model: type[BaseModel], location: SettingPath) -> str:
    """Return what to write instead of an unknown key, with `; ` before it; "" for no idea.

    Args:
        key: the unknown key.
        value: what is written under it.
        model: model of the whole settings.
        location: path of the mapping that has the key.
    """
    here = types_at(model, location)
    outer = types_at(model, location[:-1])
    fields = _all_fields(here)
    name, colon, rest = key.partition(":")
    if colon and name in fields:
        return f"; write a blank after the colon: `{name}: {rest}`"
    words = _words_of_models(key, value, here)
    if words:
        return words
    inside = _paths_inside(key, fields, likeness=1)
    if inside:
        return _meant(inside)
    if location and key in _all_fields(outer):
        return f"; write {key!r} beside {str(location[-1])!r}, not under it"
    if similar_name(key, fields) is None:
        inside = _paths_inside(key, fields, likeness=_LIKENESS)
        if inside:
            return _meant(inside)
        words = _words_of_models(key, value, outer)
        if words:
            return words
    return did_you_mean(key, fields)


def _meant(paths: Iterable[str]) -> str:
    return f"; did you mean {' or '.join(map(repr, paths))}?"


def _all_fields(models: Iterable[Any]) -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = {}
    for model in models:
        fields.update(fields_of(model))
    return fields


def _words_of_models(key: str, value: object, models: Iterable[Any]) -> str:
    """Return what the models themselves say of a key; "" for nothing."""
    for model in models:
        if isinstance(model, type) and issubclass(model, Settings):
            words = model.hint(key, value)
            if words:
                return f"; {words}"
    return ""


def _paths_inside(key: str, fields: Mapping[str, FieldInfo], *, likeness: float) -> list[str]:
    """Return the paths of keys in the models of fields that are at least as like a key."""
    paths = []
    for name, field in fields.items():
        keys = _all_fields(members_of(field.annotation))
        near = difflib.get_close_matches(key, keys, n=1, cutoff=likeness)
        paths += [f"{name}.{inner}" for inner in near]
    return paths
