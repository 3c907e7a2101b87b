"""Google's own documents about the fields of requests: `discovery.json`.

`python -m docs.discovery WHEEL` writes it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("discovery.json")

_PYTHON = {"boolean": bool, "integer": int, "number": float, "string": str}


@cache
def table() -> dict[str, Any]:
    """Return the whole table."""
    return {**json.loads(FILE.read_text(encoding="utf-8"))}


def facts_of(api: str, name: str, field: str) -> dict[str, Any]:
    """Return the facts about a field of an object; empty if the document has no such field."""
    facts = table()[api]["objects"][name].get(field, {})
    return {"type": facts} if isinstance(facts, str) else facts


def choices_of(api: str, name: str, field: str) -> set[str]:
    """Return the values that Google offers for a field, without those that say nothing."""
    choices = facts_of(api, name, field)["choices"]
    return {value for value in choices if not value.endswith("UNSPECIFIED")}


def fields_on(api: str, request: str, path: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield object, field and facts along a path in a request's body; no facts end the way.

    Args:
        api: name of the document, such as `container.v1beta1`.
        request: method and path of the request, with `{}` for names.
        path: path of the field in the body.
    """
    objects = table()[api]["objects"]
    kind = table()[api]["requests"][request]
    for part in path.replace("[]", ".[]").split(".") if path else ():
        if part == "[]":
            kind = kind.removeprefix("[").removesuffix("]")
        elif kind.startswith("{"):
            kind = kind[1:-1]
        else:
            facts = facts_of(api, kind, part) if kind in objects else {}
            yield kind, part, facts
            if not facts:
                return
            kind = facts["type"]


def problems_of(api: str, request: str, path: str, values: Sequence[object]) -> Iterator[str]:
    """Yield what a document says against a field of a request, and its values."""
    if request not in table()[api]["requests"]:
        yield f"there is no request {request}"
        return
    facts: dict[str, Any] = {}
    for name, field, facts in fields_on(api, request, path):
        if not facts:
            yield f"{name} has no {field}"
            return
        if facts.get("deprecated"):
            yield f"{name}.{field} is deprecated"
        if facts.get("output"):
            yield f"{name}.{field} is output only"
    for value in values:
        if not isinstance(value, _PYTHON.get(facts["type"], object)):
            yield f"{path}: {value!r} is not of type {facts['type']}"
        if value not in facts.get("choices", [value]):
            yield f"{path}: {value!r} is not one of Google's values"
        if value in facts.get("old", ()):
            yield f"{path}: {value!r} is deprecated"
