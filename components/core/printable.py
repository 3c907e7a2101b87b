"""Text from a cluster as data: without characters that steer a terminal or hide other text.

Tenants write much of what berth shows: annotations, names of jobs and actors, messages of events.
A terminal obeys escape sequences in such text, and bidirectional marks show it in another order
than it has (https://nvd.nist.gov/vuln/detail/CVE-2021-25743, https://trojansource.codes).
"""

import json
import re
from typing import Any

# Control characters but newline and tab, format characters (bidirectional marks, zero widths, tags,
# the byte order mark), separators of lines and paragraphs, and halves of surrogate pairs.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001-\U000e007f"
)
_CHARACTER = re.compile(f"[{_UNSAFE}]")
_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")
_IN_JSON = re.compile(rf"[{_UNSAFE}]|\\u|\\[bfr]")


def printable(text: str) -> str:
    r"""Return a text whose unsafe characters are written as in Python: `\x1b`, `\u202e`."""
    return _CHARACTER.sub(
        lambda character: character[0].encode("unicode_escape", "surrogatepass").decode(), text
    )


def first_unsafe_character(text: str) -> re.Match[str] | None:
    """Return the first unsafe character of a text; None if there is none."""
    return _CHARACTER.search(text)


def one_line(text: str) -> str:
    """Return a printable text on one line."""
    return printable(text).replace("\n", "⏎").replace("\t", " ")


def log_line(text: str) -> str:
    """Return a printable line of a log, with its colors; what overwrites the line follows it."""
    return log_text(text.rstrip("\r"))


def log_text(text: str) -> str:
    """Return a printable piece of a log, with its colors; what overwrites a line follows it."""
    parts = _COLOR.split(text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(part if _COLOR.fullmatch(part) else printable(part) for part in parts)


def load_json(text: str | bytes) -> Any:
    """Return the value of a JSON text, with printable strings and keys.

    Raises:
        ValueError: the text is not JSON.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    value = json.loads(text)
    return _printable_value(value) if _IN_JSON.search(text) else value


def _printable_value(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable_value(entry) for entry in value]
    if isinstance(value, dict):
        return {printable(key): _printable_value(entry) for key, entry in value.items()}
    return value
