"""Versions of the parts of an environment: which are old, and which go together. Pure.

supported.yaml has the order of the parts and every combination, with sources.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from berth.components.core import fast_yaml
from berth.components.gke.versions import FEATURES
from berth.components.hardware import versions

TABLE: Mapping[str, Any] = fast_yaml.load_beside(__file__)
PARTS: Mapping[str, Mapping[str, Any]] = TABLE["parts"]
"""Parts by key, in the order in which they are upgraded."""

_SOON = timedelta(days=90)
"""Time before the end of support from which a version counts as old."""


@dataclass(frozen=True)
class Version:
    """Version of a part, with what is old about it."""

    part: str
    version: str
    """Version; empty where nobody knows it."""
    asked: str
    """Where the version is from: `cluster` or `settings`."""
    who: tuple[str, ...] = ()
    """Pools or RayClusters with this version, where others may differ."""
    ends: str = "unknown"
    """End of support: a date, or the publisher's words."""
    goes_with: tuple[str, ...] = ()
    """Versions of other parts, as a publisher names them."""
    old: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Pages that state the end of support, and what goes with the version."""


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in a version: `v1.34.1-gke.1829001` as (1, 34, 1, 1829001)."""
    return tuple(map(int, re.findall(r"\d+", version)))


def default_of(part: str) -> str:
    """Return the version of a part that berth installs by default; empty for none."""
    return str(getattr(versions, PARTS[part].get("installs", ""), "")).rpartition(":")[2]


def judged(found: Sequence[Version], today: date) -> list[Version]:
    """Return the versions of parts in their order, with what is old about each."""
    return [_judged(one, found, today) for part in PARTS for one in found if one.part == part]


def combinations(part: str, version: str) -> Iterator[Mapping[str, Any]]:
    """Yield the combinations of a version, each with the other part's versions in full."""
    for row in TABLE["combinations"]:
        if part in row["of"] and _within(version, row.get("versions", "0 or newer")):
            if feature := FEATURES.get(row.get("feature", "")):
                goes_with = dict.fromkeys(row["goes_with"], f"{feature.since} or newer")
                yield {**row, "goes_with": goes_with, "link": feature.source.link}
            else:
                yield {**row, "link": TABLE["sources"][row["source"]]["url"]}


def in_words(row: Mapping[str, Any]) -> str:
    """Return what a version goes with; empty for a row without another part."""
    return ", ".join(
        f"{PARTS.get(part, {}).get('title', part)} {text}"
        for part, text in row.get("goes_with", {}).items()
    )


def _judged(one: Version, others: Sequence[Version], today: date) -> Version:
    if not one.version:
        return one
    rows, default = list(combinations(one.part, one.version)), default_of(one.part)
    old = (
        [f"berth installs {default}"]
        if numbers(one.version) < numbers(default)[: len(numbers(one.version))]
        else []
    )
    if one.part == "gpu" and one.version in versions.GPU_OPERATOR_BAD:
        old.append(versions.GPU_OPERATOR_BAD[one.version])
    ends = next((row["ends"] for row in rows if "ends" in row), None)
    if isinstance(ends, date) and ends < today + _SOON:
        old.append(f"support {'ended' if ends < today else 'ends'} on {ends}")
    elif isinstance(ends, str):
        old.append(ends)
    for row in rows:
        there = [
            other.version
            for other in others
            if other.part in row.get("goes_with", {}) and other.version
        ]
        wrong = [version for version in there if not _fits(row, one.version, version)]
        old += [f"goes with {in_words(row)}, and there is {version}" for version in wrong]
    goes_with = tuple(filter(None, map(in_words, rows)))
    sources = tuple(dict.fromkeys(row["link"] for row in rows))
    return replace(
        one, ends=str(ends or one.ends), goes_with=goes_with, old=tuple(old), sources=sources
    )


def _fits(row: Mapping[str, Any], version: str, other: str) -> bool:
    if "behind" in row:
        return 0 <= numbers(other)[1] - numbers(version)[1] <= int(row["behind"])
    (text,) = row["goes_with"].values()
    return _within(other, text) if re.match(r"\d", text) else other in text.split(", ")


def _within(version: str, bounds: str) -> bool:
    """Return whether a version is in `1.36`, `1.3 to 1.4` or `1.6 or newer`."""
    first, *rest = re.findall(r"\d[\d.]*", bounds)
    last = numbers("" if bounds.endswith("or newer") else rest[-1] if rest else first)
    return numbers(version) >= numbers(first) and (
        not last or numbers(version)[: len(last)] <= last
    )
