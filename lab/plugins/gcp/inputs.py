"""Are these names and types ones that the provider knows? From the table that `generate_inputs` makes.

Answers to (real): the input classes of the installed pulumi_gcp.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from pathlib import Path
from typing import Any

from berth.lab.plugins.values import Secret, Unknown

_CHECKS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@cache
def table() -> dict[str, Any]:
    """The accepted inputs of each type token."""
    content: dict[str, Any] = json.loads((Path(__file__).parent / "inputs.json").read_text())
    return content


def problems(token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with the inputs' names and types: pairs of a property path and a reason.

    An unknown name stands in the reason, since the engine looks up the path's value in what the provider knows.
    """
    found: list[tuple[str, str]] = []
    known = {key: value for key, value in inputs.items() if not key.startswith("__")}
    _check("", known, table()[token], found)
    return found


def _check(path: str, value: Any, kind: Any, found: list[tuple[str, str]]) -> None:
    if isinstance(value, Secret):
        value = value.value
    if value is None or isinstance(value, Unknown) or kind == "any":
        return
    if isinstance(kind, str):
        if not isinstance(value, _CHECKS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            found.append((path, f"expected a value of type {kind}, got {value!r}"))
    elif isinstance(kind, list):
        if not isinstance(value, list):
            found.append((path, f"expected a list, got {value!r}"))
        else:
            for index, item in enumerate(value):
                _check(f"{path}[{index}]", item, kind[0], found)
    elif not isinstance(value, dict):
        found.append((path, f"expected an object, got {value!r}"))
    else:
        _check_object(path, value, kind, found)


def _check_object(path: str, value: dict[str, Any], kind: dict[str, Any], found: list[tuple[str, str]]) -> None:
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        if "*" in kind:
            _check(inner, item, kind["*"], found)
        elif key in kind:
            _check(inner, item, kind[key], found)
        elif not key.startswith("__"):
            near = difflib.get_close_matches(key, kind, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            found.append(("", f"{inner}: the provider has no such input{hint}"))
