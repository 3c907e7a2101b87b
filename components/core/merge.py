"""Merge of one mapping over another, as settings, Helm values and patches of manifests need it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def merged(
    below: Mapping[str, Any], above: Mapping[str, Any], *, by_name: Collection[str] = (), removes: bool = False
) -> dict[str, Any]:
    """Return `above` over `below`: mappings merge key by key, any other value replaces.

    Args:
        below: values that give way. Neither mapping is changed.
        above: values that win.
        by_name: keys of lists whose entries merge by their `name`, such as `containers`. New
            entries follow those of `below`.
        removes: whether a null in `above` takes the key out of the result (JSON merge patch, RFC
            7386). Else the null stays, for whoever reads the result.
    """
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if value is None and removes:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = under if isinstance(under, Mapping) else {}
            result[key] = merged(inner, value, by_name=by_name, removes=removes)
        elif key in by_name and isinstance(value, list):
            result[key] = _entries(under if isinstance(under, list) else [], value, by_name, removes=removes)
        else:
            result[key] = value
    return result


def _entries(
    below: Sequence[Mapping[str, Any]], above: Sequence[Mapping[str, Any]], by_name: Collection[str], *, removes: bool
) -> list[dict[str, Any]]:
    entries = {entry.get("name"): dict(entry) for entry in below}
    for entry in above:
        name = entry.get("name")
        entries[name] = merged(entries.get(name, {}), entry, by_name=by_name, removes=removes)
    return list(entries.values())
