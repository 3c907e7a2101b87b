"""Merge of one mapping over another, as settings, Helm values and patches of manifests need it."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any

REMOVES = "$patch"
"""Key of an entry of a list that stands for its removal: `$patch: delete`."""


def merged(
    below: Mapping[str, Any],
    above: Mapping[str, Any],
    *,
    by_name: Collection[str] = (),
    removes: bool = False,
) -> dict[str, Any]:
    """Return `above` over `below`: mappings merge key by key, any other value replaces.

    Lists of the keys `by_name`, such as `containers`, merge by the `name` of their entries, or, in
    a mapping, by what the key has there. New entries follow those of `below`. If it `removes`, a
    null in `above` takes the key out of the result (JSON merge patch, RFC 7386), and `$patch:
    delete` an entry; else both stay, for whoever reads the result.
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
            identity = by_name[key] if isinstance(by_name, Mapping) else itemgetter("name")
            result[key] = _entries(
                under if isinstance(under, list) else [], value, identity, by_name, removes=removes
            )
        else:
            result[key] = value
    return result


def _entries(
    below: Sequence[Mapping[str, Any]],
    above: Sequence[Mapping[str, Any]],
    identity: Callable[[Mapping[str, Any]], Hashable],
    by_name: Collection[str],
    *,
    removes: bool,
) -> list[dict[str, Any]]:
    entries = {identity(entry): dict(entry) for entry in below}
    for entry in above:
        key = identity(entry)
        under = entries.pop(key, {}) if REMOVES in entry else entries.get(key, {})
        if REMOVES not in entry:
            entries[key] = merged(
                {} if REMOVES in under else under, entry, by_name=by_name, removes=removes
            )
        elif not removes:
            entries[key] = dict(entry)
    return list(entries.values())
