"""Lines on the sources of the lab's modules: they exist, are parsed as meant, and are all on the
page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from berth.lab.sources import KINDS, Source, SourceError, modules, sources
from docs.lab import PAGE, lists

COVERED = {"lab", "lab/toolchain"}


def test_every_module_says_what_it_answers_to_or_that_it_simulates_nothing() -> None:
    wrong = [f"{module.path}: {module.problem}" for module in modules() if module.problem]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_only_folders_of_plumbing_say_it_for_all_their_modules() -> None:
    folders = {
        str(Path(module.path).parent)
        for module in modules()
        if module.path.endswith("/__init__.py") and any(source.kind is None for source in module.sources)
    }
    assert folders == COVERED


def test_what_is_read_or_recorded_names_a_place() -> None:
    vague = [
        f"{module.path}: {source.text}"
        for module in modules()
        for source in module.sources
        if source.kind in {"read", "recorded"} and not re.search(r"https?://\S|[\w-]+/[\w./-]+", source.text)
    ]
    assert vague == []


def test_the_page_has_a_list_of_every_kind() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"## {kind.capitalize()}" in text for kind in KINDS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A thing.\n\nNo line.", ()),
        ("A thing.\n\nAnswers to (real): etcd.", (Source("real", "etcd."),)),
        (
            "A thing.\n\nAnswers to (read): one,\n    two\nAnswers to (recorded):\n    three.",
            (Source("read", "one, two"), Source("recorded", "three.")),
        ),
        ("A thing.\n\nSimulates nothing: plumbing.", (Source(None, "plumbing."),)),
    ],
)
def test_lines_are_read(text: str, found: tuple[Source, ...]) -> None:
    assert sources(text) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Answers to (believed): x", "'believed' is not one of real, recorded, read"),
        ("Answers to: x", "not of the form"),
        ("Answers to (read):", "name no source"),
        ("Answers to (read): x\n\nMore.", "follows the lines of sources"),
        ("Answers to (read): x\nSimulates nothing: y", "answers to nothing"),
    ],
)
def test_other_lines_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SourceError, match=re.escape(problem)):
        sources(text)


def test_missing_lines_are_named_all_at_once(tmp_path: Path) -> None:
    files = {
        "lab/__init__.py": '"""Lab.\n\nSimulates nothing: plumbing.\n"""\n',
        "lab/covered.py": "x = 1\n",
        "lab/devices/__init__.py": '"""Devices."""\n',
        "lab/devices/gpu.py": '"""GPUs."""\n\nx = 1\n',
        "lab/devices/nic.py": '"""NICs.\n\nAnswers to (read): a/page.\n"""\n\nx = 1\n',
        "lab/charts/one/Chart.yaml": "# Answers to (read): a/chart\nname: one\n",
        "lab/charts/two/Chart.yaml": "name: two\n# Answers to (read): too late\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [module.path for module in modules(tmp_path) if module.problem] == [
        "lab/charts/two/Chart.yaml",
        "lab/devices/gpu.py",
    ]
    assert "- [lab/devices/nic.py](../lab/devices/nic.py): a/page." in lists(modules(tmp_path))
