"""Differences between an object as last seen and as the program wants it, by path.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (4-preview-update.json)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from berth.components.core.types import parse_quantity
from berth.lab.plugins.provider import Kind
from berth.lab.plugins.values import Unknown
from docs.immutable import Path, needs_replacement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Values under these keys are resource quantities: the server writes `1000m` back as `1`.
_QUANTITY_PARENTS = frozenset({"limits", "requests", "hard", "capacity", "min", "max", "default", "defaultRequest"})
_QUANTITY_KEYS = frozenset({"sizeLimit", "storage"})

_MISSING = object()

_PART = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[([^\]]*)\]|([^.\[\]]+)')


def compare(old: Mapping[str, Any], new: Mapping[str, Any], immutable: tuple[Path, ...] = ()) -> dict[str, Kind]:
    """Return the differences by property path, such as `spec.ports[0].port`."""
    found: dict[Path, tuple[Kind, Any]] = {}
    _compare((), dict(old), dict(new), found)
    return {
        path_text(path): kind.as_replace() if needs_replacement(path, value, immutable) else kind
        for path, (kind, value) in found.items()
    }


def without_ignored(differences: Mapping[str, Kind], ignored: Iterable[str]) -> dict[str, Kind]:
    """Return the differences that no ignored path covers."""
    patterns = [_parts(path) for path in ignored]
    return {
        path: kind
        for path, kind in differences.items()
        if not any(_covers(pattern, _parts(path)) for pattern in patterns)
    }


def path_text(path: Path) -> str:
    """Return a path as the engine writes it; keys with dots, quotes or brackets are in brackets."""
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
    """Return whether two resource quantities (`1`, `"1000m"`, `"1Gi"`) are the same amount."""
    try:
        return parse_quantity(str(old)) == parse_quantity(str(new))
    except ValueError:
        return False


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
    is_quantity = path[-1] in _QUANTITY_KEYS or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)
    return bool(old == new) or (is_quantity and same_quantity(old, new))


def _parts(text: str) -> list[str]:
    return [next(part for part in match.groups() if part is not None) for match in _PART.finditer(text)]


def _covers(pattern: list[str], path: list[str]) -> bool:
    return len(pattern) <= len(path) and all(a in {"*", b} for a, b in zip(pattern, path, strict=False))
