"""Property paths as the engine writes them, and the values at them. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from berth.components.core.plain_secrets import SECRET

MISSING: Any = object()
"""Marker of a path without a value."""

LATER = "(known later)"
"""Text in place of a value that only `pulumi up` will know."""

# Keys of the engine's special values, and of secrets (pulumi, sdk/go/common/resource/sig/sig.go).
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - names the kind of a value

# The engine's texts for unknown values (pulumi, sdk/go/common/resource/plugin/rpc.go).
_UNKNOWN_VALUES = {
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
}

_DEFAULTS = "__defaults"
"""Key of the plugin's list of defaults."""

_MARKS = (_SIGNATURE, _DEFAULTS, *_UNKNOWN_VALUES)


def is_unknown(value: Any) -> bool:
    """Return whether a value is the engine's text for one that only `pulumi up` will know."""
    return isinstance(value, str) and value in _UNKNOWN_VALUES


def revealed(value: Any) -> Any:
    """Return a value with every secret as `[secret]`, and every unknown part as `(known later)`.

    A value without such a part, as most are, is returned as it is: to find none in its text takes
    a fifth of the time of a copy.
    """
    text = json.dumps(value)
    return _revealed(value) if any(mark in text for mark in _MARKS) else value


def _revealed(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(_SIGNATURE) == _SECRET_SIGNATURE:
            return SECRET
        return {key: _revealed(inner) for key, inner in value.items() if key != _DEFAULTS}
    if isinstance(value, list):
        return [_revealed(inner) for inner in value]
    return LATER if is_unknown(value) else value


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of the engine; MISSING where there is none.

    A key with dots may be unquoted (`labels.nvidia.com/mig.config`): the longest key counts.
    """
    if not path:
        return value
    if isinstance(value, Mapping):
        quoted = re.match(r'\["((?:[^"\\]|\\.)*)"\]\.?', path)
        if quoted:
            key = quoted[1].replace('\\"', '"')
            return value_at(value[key], path[quoted.end() :]) if key in value else MISSING
        fitting = [key for key in value if path == key or path.startswith((f"{key}.", f"{key}["))]
        if not fitting:
            return MISSING
        key = max(fitting, key=len)
        return value_at(value[key], path[len(key) :].removeprefix("."))
    index = re.match(r"\[(\d+)\]\.?", path)
    if isinstance(value, list) and index and int(index[1]) < len(value):
        return value_at(value[int(index[1])], path[index.end() :])
    return MISSING


def below(path: str, prefix: str) -> bool:
    """Return whether a path is another one, or below it; indices of lists do not count."""
    plain = re.sub(r"\[\d+\]", "", path)
    return plain == prefix or plain.startswith((f"{prefix}.", f"{prefix}["))


def differing(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the paths at which two values differ, inside mappings and lists of one length."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _differing_keys(old, new, path)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        paths = []
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            paths += differing(one, other, f"{path}[{index}]")
        return paths
    both_exist = old is not MISSING and new is not MISSING
    return [] if both_exist and old == new else [path]


def _differing_keys(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> list[str]:
    paths = []
    for key in dict.fromkeys((*old, *new)):
        below_key = _path_of_key(path, key)
        paths += differing(old.get(key, MISSING), new.get(key, MISSING), below_key)
    return paths


def _path_of_key(path: str, key: str) -> str:
    if "." in key:
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else str(key)
