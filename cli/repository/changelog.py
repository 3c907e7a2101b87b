"""Changelog that the package carries: its entries, by version."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CHANGELOG = Path(__file__).parent.with_name("CHANGELOG.md")
UNRELEASED = "Unreleased"

_HEADING = re.compile(r"^## (.+)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """Entry of one version."""

    version: str
    """`0.2.0`, or `Unreleased`."""
    text: str
    """Markdown below the version's heading."""

    def __str__(self) -> str:
        return f"## {self.version}\n\n{self.text}"


def changelog_entries(text: str) -> list[Entry]:
    """Return the entries of a changelog, in its order."""
    _, *parts = _HEADING.split(text)
    return [
        Entry(name.strip(), body.strip())
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def entries_between(found: Iterable[Entry], old: str, new: str) -> list[Entry]:
    """Return the entries of versions newer than `old`, up to `new`.

    The changes of an unreleased `new` are those of the entry `Unreleased`.
    """
    found = list(found)
    if new not in {entry.version for entry in found}:
        found = [
            Entry(new, entry.text) if entry.version == UNRELEASED else entry for entry in found
        ]
    first, last = version_numbers(old), version_numbers(new)
    return [
        entry
        for entry in found
        if entry.version != UNRELEASED and first < version_numbers(entry.version) <= last
    ]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version in an order: `0.10.1` as (0, 10, 1).

    Raises:
        ValueError: the text is not a version.
    """
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        raise ValueError(f"{version!r} is not a version; write for example 0.2.0")
    return tuple(map(int, release[0].split(".")))
