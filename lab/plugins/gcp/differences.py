"""What differs between recorded and wanted inputs, path by path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lab.plugins.gcp.resource import last_part
from lab.plugins.provider import Kind
from lab.plugins.values import Unknown, reveal

if TYPE_CHECKING:
    from collections.abc import Iterable

# References, which may be names, paths or self links of the same thing.
_REFERENCES = {"network", "subnetwork", "cluster", "router"}


def differences(
    olds: dict[str, Any], news: dict[str, Any], replaces: frozenset[str], ignored: Iterable[str] = ()
) -> dict[str, Kind]:
    """The kind of difference by path, such as `nodeConfig.taints[0].value`.

    Args:
        olds: the recorded inputs.
        news: the wanted ones; parts may be unknown, which counts as different.
        replaces: paths without indices whose difference, or one below them, needs a new resource.
        ignored: paths whose difference, or one below them, does not count.
    """
    found: dict[str, Kind] = {}
    _compare("", _named(olds), _named(news), found)
    skipped = tuple(ignored)
    return {
        path: kind.as_replace() if _below(re.sub(r"\[\d+\]", "", path), replaces) else kind
        for path, kind in found.items()
        if not _below(path, skipped)
    }


def _named(inputs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in reveal(inputs).items() if not key.startswith("__")}


def _below(path: str, tops: Iterable[str]) -> bool:
    return any(path == top or path.startswith((f"{top}.", f"{top}[")) for top in tops)


def _compare(path: str, old: Any, new: Any, found: dict[str, Kind]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key.startswith("__"):
                continue
            _compare(f"{path}.{key}" if path else key, old.get(key), new.get(key), found)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            _compare(f"{path}[{index}]", before, after, found)
    elif not _same(path, old, new):
        found[path] = Kind.ADD if old is None else Kind.DELETE if new is None else Kind.UPDATE


def _same(path: str, old: Any, new: Any) -> bool:
    if isinstance(new, Unknown):
        return False
    if re.split(r"[.\[]", path)[-1] in _REFERENCES and isinstance(old, str) and isinstance(new, str):
        return last_part(old) == last_part(new)
    # Nothing, empty and false are the same to the API; zero is not (a pool of no nodes).
    return bool(old == new) or (_nothing(old) and _nothing(new))


def _nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})
