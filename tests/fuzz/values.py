"""Values of settings: good ones by the JSON Schema, and hostile ones of every type."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from berth.lab.home import CLONE

Node = dict[str, Any]

LONG = "a" * 300

ODD = json.loads(Path(__file__).with_name("odd.json").read_text(encoding="utf-8"))
"""Texts for settings, and bytes (as Latin-1) for places of a file."""
TEXTS = [*ODD["texts"], LONG]
NUMBERS = [0, 1, -1, 2, 3, 8, 16, 17, 255, 512, 1000, 65536, 2**31, 2**53, 2**63, -(2**63), 10**17]
OTHERS: list[Any] = [
    True,
    False,
    None,
    0.5,
    -0.0,
    1e-320,
    1e300,
    1.5,
    2.0,
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    [None],
    {"a": None},
]

_CHARACTERS = st.characters(exclude_categories=("Cs", "Cc"))


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(TEXTS) | st.text(_CHARACTERS, max_size=12)


@cache
def hostile() -> st.SearchStrategy[Any]:
    """Values of any type, few of which any setting takes."""
    scalars = (
        texts() | st.sampled_from(NUMBERS) | st.integers(-(10**9), 10**9) | st.sampled_from(OTHERS)
    )
    return scalars | st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=6,
    )


@cache
def schema() -> Node:
    found: Node = json.loads((CLONE / "stacks" / "schema.json").read_text(encoding="utf-8"))
    return found


def resolved(node: Node) -> Node:
    while "$ref" in node:
        node = {
            **schema()["$defs"][node["$ref"].rpartition("/")[2]],
            **{k: v for k, v in node.items() if k != "$ref"},
        }
    return node


def forms(node: Node) -> list[Node]:
    """Return the alternatives of a node of the schema."""
    node = resolved(node)
    inner = node.get("anyOf") or node.get("oneOf")
    return (
        [form for one in inner for form in forms(one)]
        if inner and "properties" not in node
        else [node]
    )


@cache
def _of(key: str) -> st.SearchStrategy[Any]:
    return _strategy(json.loads(key))


def fitting(node: Node) -> st.SearchStrategy[Any]:
    """Values that the schema takes, mostly: its examples more often than others."""
    return _of(json.dumps(node, sort_keys=True))


def _strategy(node: Node) -> st.SearchStrategy[Any]:
    whole = resolved(node)
    examples = [
        *whole.get("examples", []),
        *([whole["default"]] if whole.get("default") is not None else []),
    ]
    found = [_form(form) for form in forms(node)]
    return st.one_of(*([st.sampled_from(examples)] * 2 if examples else []), *found)


def _form(node: Node) -> st.SearchStrategy[Any]:
    if "const" in node:
        return st.just(node["const"])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    match node.get("type"):
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return _number(node)
        case "string":
            return st.from_regex(node["pattern"], fullmatch=True) if "pattern" in node else texts()
        case "array":
            return st.lists(fitting(node.get("items", {})), max_size=3)
        case "object":
            return _object(node)
    return hostile()


def _number(node: Node) -> st.SearchStrategy[Any]:
    least = int(node.get("minimum") or node.get("exclusiveMinimum") or 0)
    most = int(node.get("maximum") or least + 1000)
    integers = st.sampled_from([least, most]) | st.integers(least, min(most, least + 20))
    return (
        integers
        if node["type"] == "integer"
        else integers | st.floats(least, most, allow_nan=False)
    )


def _object(node: Node) -> st.SearchStrategy[Any]:
    properties = node.get("properties", {})
    if properties:
        required = set(node.get("required", ()))
        return st.fixed_dictionaries(
            {key: fitting(part) for key, part in properties.items() if key in required},
            optional={
                key: fitting(part) for key, part in properties.items() if key not in required
            },
        ).map(lambda found: found)
    inner = node.get("additionalProperties")
    values = fitting(inner) if isinstance(inner, dict) else hostile()
    return st.dictionaries(
        st.sampled_from(["alice", "bob", "x", "dev"]) | texts(), values, max_size=2
    )
