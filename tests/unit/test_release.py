"""A release: one version, a changelog in order, and the page of supported versions."""

import re
import tomllib

import pytest

from berth.cli.repository.changelog import (
    CHANGELOG,
    UNRELEASED,
    changelog_entries,
    entries_between,
    version_numbers,
)
from berth.components.core import fast_yaml
from berth.components.core.distribution import installed_version
from berth.lab.home import CLONE

PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def test_the_version_stands_in_one_place() -> None:
    assert installed_version() == PROJECT["version"]
    sources = [
        file
        for folder in ("cli", "components", "stacks", "lab")
        for file in (CLONE / folder).rglob("*.py")
    ]
    assert [
        str(file)
        for file in sources
        if f'"{PROJECT["version"]}"' in file.read_text(encoding="utf-8")
    ] == []


def test_the_changelog_has_the_version_and_is_in_order() -> None:
    found = changelog_entries(CHANGELOG.read_text(encoding="utf-8"))
    names = [entry.version for entry in found]
    released = [name for name in names if name != UNRELEASED]
    assert names[1 if UNRELEASED in names else 0 :] == released, "Unreleased stands first"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", name) for name in released)
    assert released == sorted(set(released), key=version_numbers, reverse=True)
    assert PROJECT["version"] in released or names[0] == UNRELEASED
    assert PROJECT["version"] not in released or released[0] == PROJECT["version"], (
        "an older version has this entry"
    )
    for entry in found:
        assert entry.text, entry.version
        assert set(re.findall(r"^### (.+)$", entry.text, flags=re.MULTILINE)) <= set(KINDS), (
            entry.version
        )


def test_the_changelog_names_what_an_update_of_a_recorded_state_changes() -> None:
    text = " ".join(CHANGELOG.read_text(encoding="utf-8").split())
    changed = fast_yaml.load_file(CLONE / "tests/lab/changed_in_place.yaml")
    restarted = fast_yaml.load_file(CLONE / "tests/lab/restarted.yaml")
    words = [*changed.values()]
    for names in restarted.values():
        words += names.values()
    assert [phrase for phrase in words if phrase not in text] == []


def test_entries_between_two_versions() -> None:
    found = changelog_entries(
        "# Changelog\n\n## Unreleased\n\nd\n\n## 0.10.0\n\nc\n\n## 0.2.0\n\nb\n\n## 0.1.0\n\na\n"
    )
    assert [entry.text for entry in entries_between(found, "0.1.0", "0.10.0")] == ["c", "b"]
    assert [entry.text for entry in entries_between(found, "0.1.0", "0.2.0")] == ["b"]
    assert [str(entry) for entry in entries_between(found, "0.10.0", "0.11.0")] == [
        "## 0.11.0\n\nd"
    ]
    assert entries_between(found, "0.10.0", "0.10.0") == []
    with pytest.raises(ValueError, match="'new' is not a version"):
        version_numbers("new")
