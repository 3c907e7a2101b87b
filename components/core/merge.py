"""Merge of one mapping over another, as settings, Helm values and patches of manifests need it."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any

REMOVES = "$patch"
"""Key of an entry of a list that stands for its removal: `$patch: delete`."""

Identity = Callable[[Mapping[str, Any]], Hashable]
"""Key that identifies an entry of a list."""


def merged(
    below: Mapping[str, Any],
    above: Mapping[str, Any],
    *,
    by_name: Collection[str] | Mapping[str, Identity] = (),
    removes: bool = False,
) -> dict[str, Any]:
    """Return `above` over `below`: mappings merge key by key, any other value replaces.

    Args:
        below: the mapping whose values give way.
        above: the mapping whose values win.
        by_name: keys of lists whose entries merge, such as `containers`: by their `name`, or, in a
            mapping, by what the key has there. New entries follow those of `below`.
        removes: whether a null in `above` takes the key out of the result (JSON merge patch, RFC
            7386), and `$patch: delete` an entry; else both stay, for whoever reads the result.
    """
    if isinstance(by_name, Mapping):
        identities = by_name
    else:
        identities = dict.fromkeys(by_name, itemgetter("name"))
    return _merged(below, above, identities, removes=removes)


def _merged(
    below: Mapping[str, Any],
    above: Mapping[str, Any],
    identities: Mapping[str, Identity],
    *,
    removes: bool,
) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if value is None and removes:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = under if isinstance(under, Mapping) else {}
            result[key] = _merged(inner, value, identities, removes=removes)
        elif key in identities and isinstance(value, list):
            entries = under if isinstance(under, list) else []
            result[key] = _merged_list(entries, value, key, identities, removes=removes)
        else:
            result[key] = value
    return result


def _merged_list(
    below: Sequence[Mapping[str, Any]],
    above: Sequence[Mapping[str, Any]],
    key: str,
    identities: Mapping[str, Identity],
    *,
    removes: bool,
) -> list[dict[str, Any]]:
    identity = identities[key]
    entries = {identity(entry): dict(entry) for entry in below}
    for entry in above:
        name = identity(entry)
        if REMOVES in entry:
            entries.pop(name, None)
            if not removes:
                entries[name] = dict(entry)
            continue
        under = entries.get(name, {})
        if REMOVES in under:
            under = {}
        entries[name] = _merged(under, entry, identities, removes=removes)
    return list(entries.values())
