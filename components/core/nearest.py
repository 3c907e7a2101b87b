"""The known name that is nearest to a misspelled one."""

import difflib
from collections.abc import Iterable

_LIKENESS = 0.65
"""Likeness from which a name is taken for a misspelled one."""

_MOST_SHOWN = 12


def nearest_names(given: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that are nearest to one by spelling, however far."""
    return difflib.get_close_matches(given.lower(), list(known), n=count, cutoff=0)


def similar_name(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelled one likely means; None without one."""
    lowered = {name.lower(): name for name in sorted(known)}
    near = difflib.get_close_matches(given.lower(), lowered, n=1, cutoff=_LIKENESS)
    return lowered[near[0]] if near else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` or `"; known are …"` for a misspelled name; else nothing."""
    names = sorted(known)
    similar = similar_name(given, names)
    if similar is not None:
        return f"; did you mean {similar!r}?"
    if not names:
        return ""
    more = ", …" if len(names) > _MOST_SHOWN else ""
    return f"; known are {', '.join(names[:_MOST_SHOWN])}{more}"
