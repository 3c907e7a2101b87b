"""Differences between an object as it was last seen and as the program wants it, path by path.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (4-preview-update.json)
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.kubernetes.immutable import Pattern, needs_replacement
from berth.lab.plugins.provider import Kind
from berth.lab.plugins.values import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path = tuple[str | int, ...]

# Values under these keys are resource quantities: the server writes `1000m` back as `1`.
_QUANTITY_PARENTS = frozenset({"limits", "requests", "hard", "capacity", "min", "max", "default", "defaultRequest"})
_QUANTITY_KEYS = frozenset({"sizeLimit", "storage"})

_FACTORS = {
    "": Decimal(1),
    **{
        letter: Decimal(1000) ** power
        for letter, power in zip("numkMGTPE", (-3, -2, -1, 1, 2, 3, 4, 5, 6), strict=True)
    },
    **{f"{letter}i": Decimal(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}

_MISSING = object()


def compare(old: Mapping[str, Any], new: Mapping[str, Any], immutable: tuple[Pattern, ...] = ()) -> dict[str, Kind]:
    """The differences by property path, such as `spec.ports[0].port`.

    Args:
        old: the recorded object, with only the parts that its inputs spoke of.
        new: the wanted object; parts of it may be unknown.
        immutable: fields whose change needs a new object.
    """
    found: dict[Path, tuple[Kind, Any]] = {}
    _compare((), dict(old), dict(new), found)
    return {
        path_text(path): kind.as_replace() if needs_replacement(path, value, immutable) else kind
        for path, (kind, value) in found.items()
    }


def without_ignored(differences: Mapping[str, Kind], ignored: Iterable[str]) -> dict[str, Kind]:
    """The differences that no ignored path covers."""
    patterns = [_parse(path) for path in ignored]
    return {
        path: kind
        for path, kind in differences.items()
        if not any(_covers(pattern, _parse(path)) for pattern in patterns)
    }


def path_text(path: Path) -> str:
    """A path as the engine writes it: keys with dots, quotes or brackets in them stand in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif any(character in part for character in '."[]'):
            escaped = part.replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{part}" if text else part
    return text


def same_quantity(old: Any, new: Any) -> bool:
    """Whether two resource quantities (`1`, `"1000m"`, `"1Gi"`) are the same amount."""
    first, second = _amount(old), _amount(new)
    return first is not None and first == second


def _compare(path: Path, old: Any, new: Any, found: dict[Path, tuple[Kind, Any]]) -> None:
    if isinstance(new, Unknown):
        found[path] = (Kind.ADD if old is _MISSING else Kind.UPDATE, None)
    elif new is _MISSING:
        found[path] = (Kind.DELETE, None)
    elif old is _MISSING:
        found[path] = (Kind.ADD, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            _compare((*path, key), old.get(key, _MISSING), new.get(key, _MISSING), found)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            _compare((*path, index), before, after, found)
    elif not _same(path, old, new):
        found[path] = (Kind.UPDATE, new)


def _same(path: Path, old: Any, new: Any) -> bool:
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new:
        return True
    is_quantity = path[-1] in _QUANTITY_KEYS or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)
    return is_quantity and same_quantity(old, new)


def _amount(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    digits = text.rstrip("numkKMGTPEi")
    try:
        return Decimal(digits) * _FACTORS[text[len(digits) :]]
    except (InvalidOperation, KeyError):
        return None


def _parse(text: str) -> list[str]:
    parts: list[str] = []
    current, quoted, bracketed = "", False, False
    for character in text:
        if character == '"':
            quoted = not quoted
        elif not quoted and character in ".[]":
            if current or (bracketed and character == "]"):
                parts.append(current)
            current, bracketed = "", character == "["
        else:
            current += character
    return [*parts, current] if current else parts


def _covers(pattern: list[str], path: list[str]) -> bool:
    return len(pattern) <= len(path) and all(a in {"*", b} for a, b in zip(pattern, path, strict=False))
