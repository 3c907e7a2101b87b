"""Problems of settings: place, message and fix; for an unknown key, the key that was meant.

That is a key here, above or below, or one for another tool's word.
"""

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from berth.components.core.nearest import did_you_mean
from berth.components.core.printable import one_line
from berth.components.core.settings import Settings

SettingPath = tuple[str | int, ...]
"""Keys and list positions from the top of a stack's settings down to a value."""

_LIKENESS = 0.75
"""Likeness from which a key is taken for a misspelled one of a model inside."""


@dataclass(frozen=True)
class Problem:
    """Thing that is wrong."""

    path: SettingPath
    message: str
    rests_on: tuple[SettingPath, ...] = ()
    """Other settings that it comes from: nothing can be said while one of them, or what is in it,
    is wrong by itself."""

    def rests_on_any(self, paths: Iterable[SettingPath]) -> bool:
        """Whether a setting that it depends on is among the paths, or holds one of them."""
        return any(path[: len(root)] == root for path in paths for root in self.rests_on)

    @property
    def where(self) -> str:
        """The path as text on one line: `environment.pools.dev.nodes`."""
        text = ""
        for part in self.path:
            key = part if isinstance(part, int) or part.isprintable() else repr(part)
            text += f"[{key}]" if isinstance(part, int) else f".{key}" if text else str(key)
        return text

    def __str__(self) -> str:
        """The setting and what is wrong, on one line: a value may have line breaks of its own."""
        return one_line(f"{self.where}: {self.message}" if self.where else self.message)


def from_validation(
    error: ValidationError, model: type[BaseModel], root: SettingPath
) -> list[Problem]:
    """Pydantic's errors as problems; the model tells the known keys, `root` is its value's path."""
    problems = []
    for detail in error.errors(include_url=False):
        unknown = detail["type"] == "extra_forbidden"
        location = _location(detail["loc"][:-1] if unknown else detail["loc"], model)
        if detail["type"].startswith("union_tag_"):
            location += (detail["ctx"]["discriminator"].strip("'"),)
        if unknown:
            key, above = str(detail["loc"][-1]), str(location[-1]) if location else ""
            hint = _hint_of(
                key,
                detail.get("input"),
                _types(model, location),
                above,
                _types(model, location[:-1]),
            )
            location += (detail["loc"][-1],)
            message = f"unknown key {key!r}{hint}"
        else:
            message = _message(dict(detail))
        problems.append(Problem(root + location, message))
    return problems


def _message(detail: dict[str, Any]) -> str:
    kind, given = detail["type"], detail.get("input")
    context: dict[str, Any] = detail.get("ctx") or {}
    match kind:
        case "missing" | "union_tag_not_found":
            return "is required"
        case "value_error":
            return str(context["error"])
        case "literal_error" | "union_tag_invalid":
            return _no_choice(
                context.get("tag", given), str(context.get("expected") or context["expected_tags"])
            )
        case "int_type" | "int_parsing" | "int_from_float":
            return _no_number(given, bounds=detail["loc"][-1] == "count")
        case "string_type":
            return _no_text(given)
        case "bool_parsing" | "bool_type":
            return f"{as_written(given)} is neither true nor false"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{as_written(given)} is not a mapping; {_as_mapping(given)}"
        case "too_short":
            return "needs at least one entry"
        case "string_pattern_mismatch":
            return f"{given!r} does not match {context['pattern']}"
        case _:
            return f"{detail['msg'][0].lower()}{detail['msg'][1:]} (given: {given!r})"


def as_written(value: Any) -> str:
    """Return a value as YAML has it, where Python writes it in another way."""
    if value is None or isinstance(value, bool):
        return {None: "an empty value", True: "true", False: "false"}[value]
    return value.isoformat() if isinstance(value, dt.date) else repr(value)


def _no_choice(given: Any, known: str) -> str:
    meant = given.lower() if isinstance(given, str) else given
    hint = f"; did you mean {meant!r}?" if meant != given and repr(meant) in known else ""
    return f"{as_written(given)} is not one of {known}{hint}"


def _no_number(given: Any, *, bounds: bool) -> str:
    if isinstance(given, str) and given.strip().isdecimal():
        return f"{given!r} is text, and a whole number is needed; write {int(given)} without quotes"
    range_of = re.fullmatch(r"\[?(\d+) ?(?:-|\.\.|,) ?(\d+)\]?", str(given), re.ASCII)
    if bounds and range_of:
        return (
            f"{as_written(given)} is not a whole number; write {{min: {range_of[1]}, max:"
            f" {range_of[2]}}}"
        )
    return f"{as_written(given)} is not a whole number"


def _no_text(given: Any) -> str:
    match given:
        case None:
            return 'has no value; write a text, "" for an empty one, or take the line out'
        case list():
            example = f", for example {given[0]}" if given and isinstance(given[0], str) else ""
            return f"{given!r} is a list, and one text is needed{example}"
        case dict():
            return f"{given!r} is a mapping, and a text is needed"
    return f"{as_written(given)} is not text; put it in quotes"


def _as_mapping(given: Any) -> str:
    if isinstance(given, list) and given and all(isinstance(entry, str) for entry in given):
        return f"write each as a key: {{{given[0]}: …}}"
    if (
        isinstance(given, list)
        and given
        and isinstance(given[0], dict)
        and given[0].keys() == {"name", "value"}
    ):
        return f"write {{{given[0]['name']}: {given[0]['value']}}}"
    return "write its keys on lines of their own, or {}"


def _location(parts: SettingPath, model: type[BaseModel]) -> SettingPath:
    """Return the parts of pydantic's location that the YAML has, without tags of unions."""
    types: list[Any] = [model]
    location: SettingPath = ()
    for part in parts:
        if steps := [found for outer in types if (found := _step(outer, part)) is not None]:
            types = list(chain.from_iterable(steps))
            location += (part,)
    return location


def has_setting(model: type[BaseModel], path: SettingPath) -> bool:
    """Whether a model has a setting at a path, in which `*` stands for any key or position."""
    if not path:
        return True
    *above, key = path
    return any(_step(outer, key) is not None for outer in _types(model, tuple(above)))


def _types(model: type[BaseModel], path: SettingPath) -> list[Any]:
    types: list[Any] = [model]
    for part in path:
        types = [inner for outer in types for inner in _step(outer, part) or ()]
    return types


def _step(outer: Any, part: str | int) -> list[Any] | None:
    """Return the types of a part of a value; None where values of its type have no such part.

    The part `*` is any key or position.
    """
    if isinstance(outer, type) and issubclass(outer, BaseModel):
        if part == "*":
            annotations = [field.annotation for field in outer.model_fields.values()]
            return list(chain.from_iterable(map(_members, annotations)))
        fields = outer.model_fields.items()
        return next(
            (_members(field.annotation) for name, field in fields if part in (field.alias, name)),
            None,
        )
    if outer is Any:
        return [Any]
    if get_origin(outer) is list or (get_origin(outer) is dict and part != "[key]"):
        return _members(get_args(outer)[-1])
    return None


def _hint_of(
    key: str, value: object, models: Iterable[Any], above: str, outer: Iterable[Any]
) -> str:
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
        keys = {inner for model in _members(field.annotation) for inner in _fields(model)}
        near = [key] if key in keys else []
        if not near and not exactly:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=_LIKENESS)
        found += [f"{name}.{inner}" for inner in near]
    return found


def _fields(model: Any) -> dict[str, Any]:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _members(annotation: Any) -> list[Any]:
    """Return the models and containers inside unions and Annotated."""
    if isinstance(annotation, type) or get_origin(annotation) in (dict, list):
        return [annotation]
    return [found for member in get_args(annotation) for found in _members(member)]
