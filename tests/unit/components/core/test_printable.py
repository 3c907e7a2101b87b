"""Text from a cluster: no string of it steers a terminal, whatever a tenant writes."""

import json
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.components.core.printable import load_json, log_line, one_line, printable
from berth.components.core.problems import Problem

ATTACKS = [
    "\x1b]52;c;cm0gLXJmIH4=\x07",  # fills the clipboard
    "\x1b[2J\x1b[1;1Hready",
    "\x9b2J",
    "x\r\r<!-- ",
    "admin\u202egnp.exe",
    "\u2066hidden\u2069",
    "a\u200bb\ufeff",
    "tag\U000e0041",
    "two\u2028lines",
]
UNSAFE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
texts = st.text(st.characters()) | st.sampled_from(ATTACKS)
values = st.recursive(
    texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5
)


def unsafe(text: str, allowed: str = "\n\t") -> list[str]:
    return [
        character
        for character in text
        if unicodedata.category(character) in UNSAFE and character not in allowed
    ]


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for inner in value.values() for text in strings(inner))]
    return [text for inner in value for text in strings(inner)] if isinstance(value, list) else []


@given(texts)
def test_a_printable_text_has_no_character_that_a_terminal_obeys(text: str) -> None:
    assert unsafe(printable(text)) == []
    assert unsafe(one_line(text), allowed="") == []
    if not unsafe(text):
        assert printable(text) == text


def test_all_controls_formats_and_separators_of_unicode_are_written_out() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert unsafe(printable("".join(unsafe(every)))) == []


@given(values)
def test_every_string_of_a_json_answer_is_printable(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        found = load_json(text.encode("utf-8", "surrogatepass"))
        assert [character for string in strings(found) for character in unsafe(string)] == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("abc ß漢é\n\t"), st.lists, max_leaves=5
    )
)
def test_a_harmless_answer_is_as_it_was(value: Any) -> None:
    assert load_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[32mINFO\x1b[0m ready", "\x1b[32mINFO\x1b[0m ready"),
        (" 10%\r 20%\r", " 10%\n 20%"),
        ("\x1b]0;title\x07\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J"),
    ],
)
def test_a_line_of_a_log_has_its_colors_and_nothing_else(line: str, shown: str) -> None:
    assert log_line(line) == shown


def test_the_place_of_a_problem_is_one_line() -> None:
    assert Problem(("engineer", "a\nb", 0), "").where == "engineer.'a\\nb'[0]"
    assert (
        str(Problem(("engineer", "pool"), "there is no a\n\nb"))
        == "engineer.pool: there is no a⏎⏎b"
    )
