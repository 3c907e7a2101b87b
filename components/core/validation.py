"""Problems of settings that pydantic's validation errors stand for."""

import datetime as dt
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pydantic import BaseModel, ValidationError

from berth.components.core.model_types import examples_at, types_of_part
from berth.components.core.plain_secrets import SECRET, is_secret_name
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.unknown_keys import hint_for_key


def problems_of_validation(
    error: ValidationError, model: type[BaseModel], root: SettingPath
) -> Iterator[Problem]:
    """Yield the problems of an error.

    Args:
        error: pydantic's error.
        model: the model that the value does not fit.
        root: path of the value.
    """
    for detail in error.errors(include_url=False):
        place = detail["loc"]
        if detail["type"] == "extra_forbidden":
            *above, key = place
            location = _location(tuple(above), model)
            hint = hint_for_key(str(key), detail.get("input"), model, location)
            yield Problem((*root, *location, key), f"unknown key {str(key)!r}{hint}")
            continue
        location = _location(place, model)
        if detail["type"].startswith("union_tag_"):
            location += (detail["ctx"]["discriminator"].strip("'"),)
        if detail["type"] == "string_pattern_mismatch":
            words = _no_form(detail["input"], examples_at(model, location))
        else:
            words = _message(dict(detail))
        yield Problem(root + location, words)


def _location(parts: SettingPath, model: type[BaseModel]) -> SettingPath:
    """Return the parts of pydantic's location that the YAML has, without tags of unions."""
    types: list[Any] = [model]
    location: SettingPath = ()
    for part in parts:
        inner = [types_of_part(outer, part) for outer in types]
        with_part = [types_inside for types_inside in inner if types_inside is not None]
        if with_part:
            types = list(chain.from_iterable(with_part))
            location += (part,)
    return location


def _message(detail: dict[str, Any]) -> str:
    secret = any(is_secret_name(str(part)) for part in detail["loc"])
    given = SECRET if secret and isinstance(detail.get("input"), str) else detail.get("input")
    context: dict[str, Any] = detail.get("ctx") or {}
    match detail["type"]:
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
            return f"{_as_yaml(given)} is neither true nor false"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{_as_yaml(given)} is not a mapping; {_as_mapping(given)}"
        case "too_short":
            return "needs at least one entry"
        case _:
            return f"{detail['msg'][0].lower()}{detail['msg'][1:]} (given: {given!r})"


def _no_form(given: Any, examples: list[Any]) -> str:
    """Return that a text has another form; a pattern itself would say little."""
    shown = " or ".join(map(str, examples))
    return f"{given!r} does not have the required form; write for example {shown}"


def _as_yaml(value: Any) -> str:
    """Return a value as YAML has it, where Python writes it in another way."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date) else repr(value)


def _no_choice(given: Any, choices: str) -> str:
    meant = given.lower() if isinstance(given, str) else given
    hint = f"; did you mean {meant!r}?" if meant != given and repr(meant) in choices else ""
    return f"{_as_yaml(given)} is not one of {choices}{hint}"


def _no_number(given: Any, *, bounds: bool) -> str:
    if isinstance(given, str) and given.strip().isdecimal():
        return f"{given!r} is text, and a whole number is needed; write {int(given)} without quotes"
    range_of = re.fullmatch(r"\[?(\d+) ?(?:-|\.\.|,) ?(\d+)\]?", str(given), re.ASCII)
    if bounds and range_of:
        return (
            f"{_as_yaml(given)} is not a whole number; write {{min: {range_of[1]}, max:"
            f" {range_of[2]}}}"
        )
    return f"{_as_yaml(given)} is not a whole number"


def _no_text(given: Any) -> str:
    match given:
        case None:
            return 'has no value; write a text, "" for an empty one, or take the line out'
        case list():
            example = f", for example {given[0]}" if given and isinstance(given[0], str) else ""
            return f"{given!r} is a list, and one text is needed{example}"
        case dict():
            return f"{given!r} is a mapping, and a text is needed"
    return f"{_as_yaml(given)} is not text; put it in quotes"


def _as_mapping(given: Any) -> str:
    if isinstance(given, list) and given:
        first = given[0]
        if all(isinstance(entry, str) for entry in given):
            return f"write each as a key: {{{first}: …}}"
        if isinstance(first, dict) and first.keys() == {"name", "value"}:
            return f"write {{{first['name']}: {first['value']}}}"
    return "write its keys on lines of their own, or {}"
