"""Combinations of versions that publishers support, from combinations.yaml. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from berth.cli.verbs.upgrade.parts import title_of
from berth.components.core import fast_yaml
from berth.components.gke.versions import FEATURES

_TABLES: Mapping[str, Any] = fast_yaml.load_beside(__file__)

SOURCES: Mapping[str, Mapping[str, str]] = _TABLES["sources"]
"""Title and address of each source."""


@dataclass(frozen=True)
class Combination:
    """Versions of a part that a publisher supports, and what they go with.

    Attributes:
        parts: keys of the parts that have these versions.
        versions: the versions: `1.36`, `1.3 to 1.4` or `1.6 or newer`.
        ends: last day of support, or the publisher's words; None where no publisher says it.
        goes_with: versions of another part, by its key; at most one.
        behind: most minor versions by which the part may be older than the other.
        link: page that states it.
        source: key of the source; empty for a feature of GKE, which has its own.
    """

    parts: tuple[str, ...]
    versions: str = "0 or newer"
    ends: date | str | None = None
    goes_with: Mapping[str, str] = field(default_factory=dict)
    behind: int | None = None
    link: str = ""
    source: str = ""

    def goes_with_in_words(self) -> str:
        """Return what the versions go with; empty without another part."""
        return ", ".join(f"{title_of(part)} {text}" for part, text in self.goes_with.items())

    def fits(self, version: str, other: str) -> bool:
        """Return whether a version of the part goes with one of the other part."""
        if self.behind is not None:
            minor_versions = numbers_in(other)[1] - numbers_in(version)[1]
            return 0 <= minor_versions <= self.behind
        (text,) = self.goes_with.values()
        return in_bounds(other, text) if re.match(r"\d", text) else other in text.split(", ")


def _combination(row: Mapping[str, Any]) -> Combination:
    goes_with = row.get("goes_with", {})
    if "feature" in row:
        feature = FEATURES[row["feature"]]
        goes_with = dict.fromkeys(goes_with, f"{feature.since} or newer")
        link = feature.source.link
    else:
        link = SOURCES[row["source"]]["url"]
    return Combination(
        parts=tuple(row["of"]),
        versions=row.get("versions", "0 or newer"),
        ends=row.get("ends"),
        goes_with=goes_with,
        behind=row.get("behind"),
        link=link,
        source=row.get("source", ""),
    )


COMBINATIONS = tuple(map(_combination, _TABLES["combinations"]))
"""All combinations."""


def combinations_of(part: str, version: str) -> Iterator[Combination]:
    """Yield the combinations of a version of a part."""
    for combination in COMBINATIONS:
        if part in combination.parts and in_bounds(version, combination.versions):
            yield combination


def numbers_in(version: str) -> tuple[int, ...]:
    """Return the numbers in a version: `v1.34.1-gke.1829001` as (1, 34, 1, 1829001)."""
    return tuple(map(int, re.findall(r"\d+", version)))


def in_bounds(version: str, bounds: str) -> bool:
    """Return whether a version is in `1.36`, `1.3 to 1.4` or `1.6 or newer`."""
    first, *rest = re.findall(r"\d[\d.]*", bounds)
    numbers = numbers_in(version)
    if numbers < numbers_in(first):
        return False
    if bounds.endswith("or newer"):
        return True
    last = numbers_in(rest[-1] if rest else first)
    return numbers[: len(last)] <= last
