"""Property values between the engine and a plugin: Python data and the few things JSON lacks.

The engine sends properties as protobuf structs in which a few signed objects stand for secrets,
unknown values and outputs. Here they become plain dicts, lists, strings, booleans and numbers, and:

- `Secret(value)`: the engine encrypts it in the state;
- `UNKNOWN`: known only once a resource that it depends on has been created (previews only).

The SDK's own `PropertyValue` is not used: it reads an unknown value as an ordinary string. Files
and archives, which no resource of the lab takes, are refused.

Answers to (read): Pulumi v3.250.0, sdk/go/common/resource/plugin/rpc.go and
    sdk/go/common/resource/sig:
    https://github.com/pulumi/pulumi/blob/v3.250.0/sdk/go/common/resource/plugin/rpc.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import struct_pb2

# The signatures of the engine's wire format (sdk/go/common/resource in the pulumi repository).
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (a signature of the wire format, not a password)
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

# One string for each type a value may have once it is known.
_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWN_TEXTS = frozenset(
    {
        _UNKNOWN_TEXT,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)

Properties = dict[str, Any]


class Unknown:
    """Type of `UNKNOWN`, which is true as a condition, so that `x or default` never replaces it."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Secret:
    """Value that the engine encrypts in the state and hides on the terminal."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


def read_properties(struct: struct_pb2.Struct) -> Properties:
    """Return the plain data of a property map from the engine."""
    return {key: _read(value) for key, value in struct.fields.items()}


def write_properties(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the engine's form of a property map.

    Raises:
        TypeError: the engine has no form for a value.
    """
    return struct_pb2.Struct(fields={key: _write(value) for key, value in properties.items()})


def reveal(value: Any) -> Any:
    """Return the data without `Secret` wrappers at any depth."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has(value: Any, kind: type) -> bool:
    """Return whether the data has a value of `kind` (`Secret`, `Unknown`) at any depth."""
    if isinstance(value, kind):
        return True
    if isinstance(value, Secret):
        return has(value.value, kind)
    if isinstance(value, Mapping):
        return any(has(item, kind) for item in value.values())
    if isinstance(value, list):
        return any(has(item, kind) for item in value)
    return False


def _read(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_TEXTS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_read(item) for item in value.list_value.values]
    if kind == "struct_value":
        fields = value.struct_value.fields
        signature = fields[_SIGNATURE].string_value if _SIGNATURE in fields else ""
        if not signature:
            return read_properties(value.struct_value)
        return _read_signed(signature, {key: item for key, item in fields.items() if key != _SIGNATURE})
    return None


def _read_signed(signature: str, fields: dict[str, struct_pb2.Value]) -> Any:
    if signature == _SECRET:
        return Secret(_read(fields["value"]))
    if signature == _OUTPUT:
        value = _read(fields["value"]) if "value" in fields else UNKNOWN
        return Secret(value) if "secret" in fields and fields["secret"].bool_value else value
    if signature == _RESOURCE:
        # A provider that does not accept resource references gets the id.
        return _read(fields["id"]) if "id" in fields else fields["urn"].string_value
    msg = f"a property value with the unknown signature {signature}"
    raise TypeError(msg)


def _write(value: Any) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Unknown):
        return struct_pb2.Value(string_value=_UNKNOWN_TEXT)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=write_properties(value))
    if isinstance(value, list | tuple):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_write(item) for item in value]))
    if isinstance(value, Secret):
        return struct_pb2.Value(struct_value=write_properties({_SIGNATURE: _SECRET, "value": value.value}))
    msg = f"no property value for a {type(value).__name__}"
    raise TypeError(msg)
