"""Changelog that the package carries: its entries, by version."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from berth.cli.repository.documents import with_commands

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
    """Return the entries of a changelog, in its order, with commands for links to pages."""
    _, *parts = _HEADING.split(text)
    names = parts[::2]
    bodies = parts[1::2]
    return [
        Entry(name.strip(), with_commands(body, CHANGELOG.name).strip())
        for name, body in zip(names, bodies, strict=True)
    ]


def entries_between(entries: Iterable[Entry], old: str, new: str) -> list[Entry]:
    """Return the entries of versions newer than `old`, up to `new`.

    The changes of an unreleased `new` are those of the entry `Unreleased`.

    Raises:
        ValueError: a version is not one.
    """
    versions = {entry.version: entry.text for entry in entries}
    unreleased = versions.pop(UNRELEASED, None)
    between = []
    if new not in versions and unreleased is not None:
        versions = {new: unreleased, **versions}
    first = version_numbers(old)
    last = version_numbers(new)
    for version, text in versions.items():
        if first < version_numbers(version) <= last:
            between.append(Entry(version, text))
    return between


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version in an order: `0.10.1` as (0, 10, 1).

    Raises:
        ValueError: the text is not a version.
    """
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        raise ValueError(f"{version!r} is not a version; write for example 0.2.0")
    return tuple(map(int, release[0].split(".")))
