"""Fields that the program leaves to others (`ignoreChanges`) in what is applied.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/provider/provider.go (Update, ignoreChanges):
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/provider/provider.go
"""

from __future__ import annotations

import json
from typing import Any

Item = dict[str, Any]


def keep_ignored(wanted: Item, live: Item, ignored: list[str], manager: str) -> Item:
    """The wanted object with ignored fields as they are, or left out where only others own them."""
    result: Item = json.loads(json.dumps(wanted))
    entries = live["metadata"].get("managedFields") or []
    for text in ignored:
        path = text.split(".")
        ours = any(entry.get("manager") == manager and _owns(entry, path) for entry in entries)
        theirs = any(entry.get("manager") != manager and _owns(entry, path) for entry in entries)
        _put(result, path, None if theirs and not ours else _at(live, path))
    return result


def _owns(entry: Item, path: list[str]) -> bool:
    fields = entry.get("fieldsV1") or {}
    for part in path:
        if f"f:{part}" not in fields:
            return False
        fields = fields[f"f:{part}"]
    return True


def _at(item: Item, path: list[str]) -> object:
    value: object = item
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(item: Item, path: list[str], value: object) -> None:
    *parents, last = path
    for part in parents:
        nested = item.get(part)
        if not isinstance(nested, dict):
            return
        item = nested
    if value is None:
        item.pop(last, None)
    else:
        item[last] = value
