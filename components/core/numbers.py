"""Numbers of plain data that has come through Protocol Buffers."""

from typing import Any


def whole_numbers(value: Any) -> Any:
    """Return plain data with whole floats as integers: the engine passes 8 as 8.0."""
    if isinstance(value, dict):
        return {key: whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
