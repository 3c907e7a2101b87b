"""Numbers with their nouns, for texts that people read."""

import re
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 pod`, `2 pods`, `0 policies`."""
    return f"{count} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun, of which the last word changes."""
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|ch|sh)$", noun) else f"{noun}s"


def are(count: int) -> str:
    """Return the verb that goes with a number: `is` or `are`."""
    return "is" if count == 1 else "are"


def listed(names: Iterable[object], word: str) -> str:
    """Return names with a word between the last two, `and` or `or`; with a comma only commas."""
    *first, last = map(str, names)
    rest = ", ".join(first)
    if word == ",":
        return ", ".join([*first, last])
    return f"{rest} {word} {last}" if first else last


def few(names: Sequence[str], most: int) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
