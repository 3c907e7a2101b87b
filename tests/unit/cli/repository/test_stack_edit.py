"""Edits of a stack's file: the entry changes, and no other byte."""

import difflib
from pathlib import Path

import pytest
import yaml

from berth.cli.repository.stack_edit import with_entry, without_entry
from berth.components.core.errors import BadInputError
from berth.components.core.project import shown_path
from berth.lab.home import CLONE
from berth.stacks.files import stack_file
from tests.unit.cases import table

KEYS = ("config", "berth:environment", "engineers")
TABLE = table(__file__, "stack_edit.yaml")

FILE = Path(__file__).with_name("stack_edit_file.yaml").read_text(encoding="utf-8")


def test_an_entry_is_added_behind_the_last_one() -> None:
    edited = with_entry(
        FILE, KEYS, "dave", {"workers": {"min": 0, "max": 2}, "worker": {"pool": "dev"}}
    )
    line = "            dave: {workers: {min: 0, max: 2}, worker: {pool: dev}}\n"
    assert edited == FILE.replace("            carol: {}\n", "            carol: {}\n" + line)
    assert without_entry(edited, KEYS, "dave") == FILE


def test_an_entry_goes_with_its_own_lines_and_nobody_elses_comment() -> None:
    edited = without_entry(FILE, KEYS, "bob")
    assert edited == FILE.replace("            bob:\n                workers: 2 # two\n", "")
    assert "# carol's" in edited


@pytest.mark.parametrize(("before", "after"), TABLE["dave is added"])
def test_wherever_the_engineers_are(before: str, after: str) -> None:
    head = "config:\n  berth:environment:\n"
    edited = with_entry(head + before, KEYS, "dave", {})
    assert edited == head + after


@pytest.mark.parametrize(("before", "after"), TABLE["bob is removed"])
def test_the_last_entry_leaves_an_empty_mapping(before: str, after: str) -> None:
    head = "config:\n  berth:environment:\n"
    assert without_entry(head + before, KEYS, "bob") == head + after


def test_a_name_that_yaml_takes_for_something_else_is_quoted() -> None:
    edited = with_entry(FILE, KEYS, "null", {})
    assert list(
        stack_file.parse_stack_file(stack_file.stack_path("x"), edited).settings["environment"][
            "engineers"
        ]
    ) == [
        "bob",
        "carol",
        "null",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE, "config.berth:environment.engineers.bob exists already"),
        ("config:\n  other: 1\n", "there is no config.berth:environment"),
        ("config:\n  berth:environment:\n    engineers: 5\n", "engineers is not a mapping"),
    ],
)
def test_what_cannot_be_edited(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        with_entry(text, KEYS, "bob", {})


SHIPPED = sorted(
    [*CLONE.glob("stacks/**/Pulumi.*.yaml"), *CLONE.glob("cli/template/stacks/*.yaml")]
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_other_line_of_a_shipped_file_stays(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    kind = next(kind for kind in ("environment", "engineer") if f"berth:{kind}:" in text)
    keys = ("config", f"berth:{kind}", "engineers")
    added = with_entry(text, keys, "dave", {"workers": 2})
    changed = [
        line for line in difflib.ndiff(text.splitlines(), added.splitlines()) if line[0] in "+-"
    ]
    assert [line for line in changed if "engineers:" not in line] == [
        f"+ {' ' * 6}dave: {{workers: 2}}"
    ]
    assert without_entry(added, keys, "dave").replace("    engineers: {}\n", "") == text
    present = yaml.safe_load(text)["config"][f"berth:{kind}"].get("engineers") or {}
    for name in present if len(present) > 1 else ():
        left = without_entry(text, keys, name)
        gone = [
            line for line in difflib.ndiff(text.splitlines(), left.splitlines()) if line[0] in "+-"
        ]
        assert gone[0].startswith(f"- {' ' * 6}{name}:")
        assert [line for line in gone if not line.startswith(f"- {' ' * 8}")] == gone[:1]
        assert yaml.safe_load(left)["config"][f"berth:{kind}"][
            "engineers"
        ].keys() == present.keys() - {name}


def test_a_file_of_a_project_elsewhere_is_shown_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    path = tmp_path / "elsewhere" / "Pulumi.zoe.yaml"
    assert shown_path(path) == str(path)
    (project / "Pulumi.yaml").touch()
    assert shown_path(path) == str(path)
    assert shown_path(stack_file.stack_path("zoe")) == "stacks/Pulumi.zoe.yaml"
