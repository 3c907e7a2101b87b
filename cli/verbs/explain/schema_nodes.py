"""Nodes of a JSON Schema: their forms, their types in words, and values as YAML."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from berth.components.core.words import names_in_words

Node = Mapping[str, Any]
"""A schema, or a part of one."""

_LONGEST_ENUM = 8
_PLAIN_TEXT = re.compile(r"[\w./~][\w ./@~=-]*(:[\w./@~-]+)*")
_OTHER_TYPE = re.compile(
    r"[\d_]+(\.\d*)?|\d+(:\d+)+|\d+-\d+-\d+|true|false|null|yes|no|on|off|~", flags=re.IGNORECASE
)
"""Text that YAML reads as a value of another type unless it is quoted."""

_COUNTABLE = {"string", "integer", "number", "boolean", "mapping"}
"""Types whose names take a plural."""


def without_references(node: Node, schema: Node) -> Node:
    """Return a node, or the one that it refers to."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def forms_of(node: Node, schema: Node) -> Iterator[Node]:
    """Yield the alternatives of a node, references resolved, null left out."""
    node = without_references(node, schema)
    alternatives = node.get("anyOf") or node.get("oneOf")
    if alternatives and "properties" not in node:
        for alternative in alternatives:
            yield from forms_of(alternative, schema)
    elif node.get("type") != "null":
        yield node


def is_mapping(node: Node, schema: Node) -> bool:
    """Return whether a node can be a mapping with settings of its own."""
    return any(form.get("properties") for form in forms_of(node, schema))


def property_in_forms(node: Node, name: str, forms: Sequence[Node]) -> Node:
    """Return a property's node; one that chooses among forms, such as `kind`, has all values."""
    values = []
    for form in forms:
        of_form = form.get("properties", {}).get(name, {})
        if "const" in of_form:
            values.append(of_form["const"])
    if len(values) <= 1:
        return node
    return {**{key: part for key, part in node.items() if key != "const"}, "enum": values}


def choices_of(node: Node, schema: Node) -> list[Any]:
    """Return the values of a setting that has only a few; none for any other."""
    choices: list[Any] = []
    for form in forms_of(node, schema):
        if form.get("type") == "boolean":
            choices += [True, False]
        if "enum" in form:
            choices += form["enum"]
        elif "const" in form:
            choices.append(form["const"])
    return choices


def type_in_words(node: Node, schema: Node) -> str:
    """Return a type in words: `integer or mapping`, `list of strings`, `mapping of NAME`."""
    types = dict.fromkeys(_type_of_form(form, schema) for form in forms_of(node, schema))
    return names_in_words(types or ["value"], "or")


def _type_of_form(form: Node, schema: Node) -> str:
    if "const" in form:
        return yaml_flow(form["const"])
    values = form.get("enum")
    if values:
        if len(values) <= _LONGEST_ENUM:
            return names_in_words(map(yaml_flow, values), "or")
        return f"one of {len(values)} values (such as {yaml_flow(values[0])})"
    kind = form.get("type", "value")
    if kind == "array":
        return f"list of {_type_of_many(form.get('items', {}), schema)}"
    if kind != "object":
        return str(kind)
    value = form.get("additionalProperties")
    if isinstance(value, dict) and value:
        return f"mapping of {_type_of_many(value, schema)}"
    return "mapping"


def _type_of_many(node: Node, schema: Node) -> str:
    """Return the type of several values: `strings`, or `RAPID, REGULAR or STABLE`."""
    text = type_in_words(node, schema)
    kinds = {form.get("type") for form in forms_of(node, schema)}
    return f"{text}s" if len(kinds) == 1 and text in _COUNTABLE else text


def yaml_flow(value: Any) -> str:
    """Return a value in YAML's flow style, in one line."""
    if isinstance(value, dict):
        pairs = [f"{key}: {yaml_flow(inner)}" for key, inner in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(yaml_flow, value))}]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    """Return whether YAML reads a text as it is without quotes."""
    return bool(_PLAIN_TEXT.fullmatch(text)) and not _OTHER_TYPE.fullmatch(text)
