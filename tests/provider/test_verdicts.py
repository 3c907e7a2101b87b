"""Recorded verdicts of Google's provider, with the words of berth and of the lab beside them.

`exceptions.yaml` names the edits on which they may differ, with the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from tests.provider.verdicts import Differing, read, words_that_differ

EXCEPTIONS = Path(__file__).with_name("exceptions.yaml")
MOST_FALSE_ALARMS = 0.02


@cache
def differing() -> Differing:
    return words_that_differ(*read())


def exceptions(kind: str) -> Mapping[str, str]:
    content: dict[str, dict[str, str]] = yaml.safe_load(EXCEPTIONS.read_text(encoding="utf-8"))
    return content[kind] or {}


def test_no_edit_panics_the_provider() -> None:
    _, edits = read()

    assert [edit.name for edit in edits if edit.panic] == [*exceptions("panics")]


def test_the_lab_judges_as_the_provider() -> None:
    assert differing().lab.keys() == exceptions("lab").keys()


def test_berth_says_no_less_than_the_provider_does() -> None:
    assert differing().less.keys() == exceptions("less").keys()


def test_berth_raises_few_false_alarms_and_each_is_named() -> None:
    _, edits = read()

    alarms = differing().alarms
    assert alarms.keys() == exceptions("alarms").keys()
    assert len(alarms) <= MOST_FALSE_ALARMS * len(edits)
