"""Helm values of a user beside those that berth sets.

Both merge by `core.merge.merged`, where a null stays: Helm removes the default of the chart by it
(https://helm.sh/docs/chart_template_guide/values_files/#deleting-a-default-key).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]


def overridden(ours: Any, theirs: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield where values of a user change berth's: path, berth's value, the user's value."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in (key for key in theirs if key in ours):
            yield from overridden(ours[key], theirs[key], (*path, key))
    elif path[-1:] == ("env",) and isinstance(ours, list) and isinstance(theirs, list):
        before = {entry["name"]: entry for entry in ours}
        changed = [entry for entry in theirs if isinstance(entry, Mapping) and entry.get("name") in before]
        yield from ((path, before[entry["name"]], entry) for entry in changed if entry != before[entry["name"]])
    elif ours != theirs:
        yield path, ours, theirs


def reaches(values: Any, path: Path) -> Path | None:
    """Return the part of a path at which values decide about it; None where they leave it alone."""
    for depth, key in enumerate(path):
        if not isinstance(values, Mapping):
            return path[:depth]
        if key not in values:
            return None
        values = values[key]
    return path


def has_null(values: Any) -> bool:
    """Return whether values remove a default of the chart."""
    return values is None or (isinstance(values, Mapping) and any(map(has_null, values.values())))
