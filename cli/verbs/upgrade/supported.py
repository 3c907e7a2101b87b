"""Versions of the parts of an environment, and what is old about them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from berth.cli.verbs.upgrade.combinations import Combination, combinations_of, numbers_in
from berth.cli.verbs.upgrade.parts import PARTS
from berth.components.hardware import versions

UNKNOWN = "unknown"
"""End of support that no publisher states."""
_SOON = timedelta(days=90)
"""Time before the end of support from which a version counts as old."""


@dataclass(frozen=True)
class PartVersion:
    """Version of a part, with what is old about it.

    Attributes:
        part: key of the part.
        version: the version; empty where nobody knows it.
        asked: where the version is from: `cluster` or `settings`.
        who: pools or RayClusters with this version, where others may differ.
        ends: end of support: a date, or the publisher's words.
        goes_with: versions of other parts, as a publisher names them.
        old: what is old about the version.
        sources: pages that state the end of support, and what goes with the version.
    """

    part: str
    version: str
    asked: str
    who: tuple[str, ...] = ()
    ends: str = UNKNOWN
    goes_with: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def judged_versions(unjudged: Sequence[PartVersion], today: date) -> list[PartVersion]:
    """Return the versions of parts in their order, with what is old about each."""
    order = list(PARTS)
    with_part = [one for one in unjudged if one.part in PARTS]
    in_order = sorted(with_part, key=lambda one: order.index(one.part))
    return [_judged(one, unjudged, today) for one in in_order]


def _judged(one: PartVersion, others: Sequence[PartVersion], today: date) -> PartVersion:
    if not one.version:
        return one
    combinations = list(combinations_of(one.part, one.version))
    ends = next((row.ends for row in combinations if row.ends is not None), None)
    old = [
        *_older_than_default(one),
        *_known_as_bad(one),
        *_support_ends(ends, today),
        *_in_wrong_company(one, combinations, others),
    ]
    goes_with = [row.goes_with_in_words() for row in combinations if row.goes_with]
    return replace(
        one,
        ends=one.ends if ends is None else str(ends),
        goes_with=tuple(goes_with),
        old=tuple(old),
        sources=tuple(dict.fromkeys(row.link for row in combinations)),
    )


def _older_than_default(one: PartVersion) -> Iterator[str]:
    default = PARTS[one.part].installs
    numbers = numbers_in(one.version)
    if numbers < numbers_in(default)[: len(numbers)]:
        yield f"berth installs {default}"


def _known_as_bad(one: PartVersion) -> Iterator[str]:
    fault = versions.fault_of_gpu_operator(one.version) if one.part == "gpu" else ""
    if fault:
        yield fault


def _support_ends(ends: date | str | None, today: date) -> Iterator[str]:
    if isinstance(ends, str):
        yield ends
    elif ends is not None and ends < today + _SOON:
        yield f"support {'ended' if ends < today else 'ends'} on {ends}"


def _in_wrong_company(
    one: PartVersion, combinations: Sequence[Combination], others: Sequence[PartVersion]
) -> Iterator[str]:
    """Yield versions of other parts that a version does not go with."""
    for row in combinations:
        for other in others:
            if not other.version or other.part not in row.goes_with:
                continue
            if not row.fits(one.version, other.version):
                yield f"goes with {row.goes_with_in_words()}, and there is {other.version}"
