"""Hints for unknown keys: the key that was meant, here, above or below, or another tool's word."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from berth.components.core.nearest import did_you_mean
from berth.components.core.settings import Settings

_LIKENESS = 0.75
"""Likeness from which a key is taken for a misspelled one of a model inside."""


def hint_of(key: str, value: object, models: Iterable[Any], above: str, outer: Iterable[Any]) -> str:
    """Return what to write instead of an unknown key, with `; ` before it; "" for no idea.

    `models` are types of the mapping with the key, `outer` of the mapping around it, whose key is
    `above`.
    """
    known = {name: field for model in models for name, field in _fields(model).items()}
    name, colon, rest = key.partition(":")
    if colon and name in known:
        return f"; write a blank after the colon: `{name}: {rest}`"
    if words := _words(key, value, models):
        return words
    if inside := _inside(key, known):
        return f"; did you mean {' or '.join(map(repr, inside))}?"
    if above and key in {name for model in outer for name in _fields(model)}:
        return f"; write {key!r} beside {above!r}, not under it"
    near = did_you_mean(key, known)
    if near.startswith("; did you mean"):
        return near
    if inside := _inside(key, known, exactly=False):
        return f"; did you mean {' or '.join(map(repr, inside))}?"
    return _words(key, value, outer) or near


def _words(key: str, value: object, models: Iterable[Any]) -> str:
    """Return what the models themselves say of a key."""
    own = (model for model in models if isinstance(model, type) and issubclass(model, Settings))
    words = (model.hint(key, value) for model in own)
    return next((f"; {found}" for found in words if found), "")


def _inside(key: str, known: Mapping[str, Any], *, exactly: bool = True) -> list[str]:
    """Return the paths of a key, or of similar ones, in the models of known keys."""
    found = []
    for name, field in known.items():
        keys = {inner for model in members(field.annotation) for inner in _fields(model)}
        near = [key] if key in keys else []
        if not near and not exactly:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=_LIKENESS)
        found += [f"{name}.{inner}" for inner in near]
    return found


def _fields(model: Any) -> dict[str, Any]:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def members(annotation: Any) -> list[Any]:
    """Return the models and containers inside unions and Annotated."""
    if isinstance(annotation, type) or get_origin(annotation) in (dict, list):
        return [annotation]
    return [found for member in get_args(annotation) for found in members(member)]
