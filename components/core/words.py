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


def is_or_are(count: int) -> str:
    """Return the verb that goes with a number: `is` or `are`."""
    return "is" if count == 1 else "are"


def names_in_words(names: Iterable[object], word: str) -> str:
    """Return one name or more with a word, `and` or `or`, between the last two: `a, b and c`."""
    *first, last = map(str, names)
    return f"{', '.join(first)} {word} {last}" if first else last


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`, `a and b`."""
    more = len(names) - most
    shown = [*names[:most], f"{more} more"] if more > 0 else names
    return names_in_words(shown, "and")
