"""The known name that is nearest to a misspelled one."""

import difflib
from collections.abc import Iterable


def nearest_names(given: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that are nearest to one by spelling, however far."""
    return difflib.get_close_matches(given.lower(), list(known), n=count, cutoff=0)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` or `"; known are …"` for a misspelled name; else nothing."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(given.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lowered[near[0]]!r}?"
    if not names:
        return ""
    limit = 12
    return f"; known are {', '.join(names[:limit])}{', …' if len(names) > limit else ''}"
