from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2

from berth.lab.plugins.values import (
    UNKNOWN,
    Secret,
    Unknown,
    has,
    read_properties,
    reveal,
    write_properties,
)

SIGNATURE = "4dabf18193072939515e22adb298388d"


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    result = struct_pb2.Struct()
    result.update(value)
    return result


@pytest.mark.parametrize(
    "value", [None, True, False, 0, 8, 2.5, "", "text", [], {}, [1, [2, {"a": None}]], {"a": {"b": [True]}}]
)
def test_plain_values_come_back(value: Any) -> None:
    back = read_properties(write_properties({"x": value}))["x"]
    assert back == value
    assert type(back) is type(value)


def test_whole_numbers_are_integers() -> None:
    read = read_properties(struct({"count": 8.0, "half": 0.5}))
    assert {key: repr(value) for key, value in read.items()} == {"count": "8", "half": "0.5"}


def test_every_unknown_is_known_as_such() -> None:
    texts = ("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "dd056dcd-154b-4c76-9bd3-c8f88648b5ff")
    read = read_properties(struct({"a": {"b": list(texts)}}))
    assert read == {"a": {"b": [UNKNOWN, UNKNOWN]}}
    assert read_properties(write_properties(read)) == read


def test_secrets_keep_their_place() -> None:
    read = read_properties(write_properties({"a": [Secret({"b": 1})], "c": Secret(UNKNOWN)}))
    assert read == {"a": [Secret({"b": 1})], "c": Secret(UNKNOWN)}
    assert reveal(read) == {"a": [{"b": 1}], "c": UNKNOWN}
    assert has(read, Secret)
    assert has(read, Unknown)
    assert "1" not in repr(read["a"])


def test_outputs_are_their_values() -> None:
    output = {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4", "value": "x", "dependencies": ["urn"], "secret": True}
    pending = {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    assert read_properties(struct({"a": output, "b": pending})) == {"a": Secret("x"), "b": UNKNOWN}


@pytest.mark.parametrize("signature", ["0", "c44067f5952c0a294b673a41bacd8c17"], ids=["unknown", "asset"])
def test_other_signatures_are_refused(signature: str) -> None:
    with pytest.raises(TypeError, match="unknown signature"):
        read_properties(struct({"a": {SIGNATURE: signature}}))
