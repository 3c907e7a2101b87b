"""Standard streams on any terminal: a character that the encoding lacks is replaced."""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOWrapper

_PLAIN = {
    "✓": "ok",
    "✗": "x",
    "–": "-",
    "−": "-",
    "—": "-",
    "·": "-",
    "…": "...",
    "→": "->",
    "±": "+/-",
    "×": "x",
    "⏎": " / ",
    "≥": ">=",
    "≤": "<=",
}
"""Characters that berth itself prints, in ASCII."""


def prepare() -> None:
    """Make both streams writable: a closed one leads nowhere, and a poor encoding gets ASCII."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - the same
    codecs.register_error("berth", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="berth")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that an encoding lacks, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    text = "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in lacking)
    return text, error.end
