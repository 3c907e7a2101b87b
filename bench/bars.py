"""Bars of the benchmark: the largest good value of a figure, mostly as a ratio within one run.

A bar in seconds stands only where a user would notice the limit on any machine. The bars of an
environment compare `berth up` with plain `pulumi up --yes` of the same program, which makes its own
preview, with the floor, and with plain Pulumi's namespaces and RayClusters.

`bench/released.json` has the ratios of the last release, with which the short benchmark compares
its own; a release replaces them by those that the short benchmark prints.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELEASED = Path(__file__).with_name("released.json")

BASE = "empty program: no-op"
"""Figure that those of the short benchmark are divided by: the engine and Python themselves."""

STATE = "state kB a berth"

_TOLERATED = {"cpu": 1.3, "facts": 1.1}
"""Growth since the last release that is noise, by the kind of the figure."""

Figure = tuple[str, ...]
"""Path of a figure in a run's document: `("seconds", "up")`, `("memory", "keeper", "all")`."""

_PREFIXES = {"memory": "memory of ", "cpu": "CPU of "}
_UNITS = {"seconds": "s", "memory": "MB", "facts": "kB", "cpu": "s"}


@dataclass(frozen=True)
class Bar:
    """Largest good value of a figure.

    Attributes:
        figure: the figure.
        limit: the value, in the figure's unit or as a ratio.
        by: figure of the same run that it is divided by; empty for the figure itself.
        size: number of engineers that the bar is for; None for any.
    """

    figure: Figure
    limit: float
    by: Figure = ()
    size: int | None = None


@dataclass(frozen=True)
class Measured:
    """A figure beside its bar.

    Attributes:
        what: name of the figure.
        value: the figure.
        limit: the largest good value.
        unit: unit of both: `s`, `MB`, `kB`, `×` for a ratio.
    """

    what: str
    value: float
    limit: float
    unit: str

    @property
    def good(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.3g} {self.unit} (bar: ≤ {self.limit:g})"


def _timed(what: str, limit: float, by: str = "", size: int | None = None) -> Bar:
    return Bar(("seconds", what), limit, ("seconds", by) if by else (), size)


BARS: Mapping[str, tuple[Bar, ...]] = {
    "environment": (
        *(
            _timed(what, 1.15, f"same program: {what}", 10)
            for what in ("up", "one more", "destroy")
        ),
        _timed("up", 3, "floor: up", 100),
        _timed("destroy", 2, "floor: destroy", 100),
        _timed("no-op", 2.2, "plain pulumi: no-op", 100),
    ),
    "preview": (_timed("preview", 2, "plain pulumi: preview"),),
    "check": (_timed("check", 2),),
    "stacks": (
        *(
            _timed(f"among others: {what}", 1.1, f"alone: {what}")
            for what in ("up", "no-op", "destroy")
        ),
        _timed("among others: no-op", 2, BASE),
    ),
    "status": (
        # The keeper's limits are those of its pod and Job (components/lifecycle/manifests.py).
        _timed("keeper", 240),
        Bar(("memory", "keeper", "all"), 256),
        *(
            _timed(what, 3)
            for what in (
                "status, all late",
                "status, all ready",
                "watch: first picture",
                "watch: a change",
            )
        ),
        *(
            Bar(("memory", what, "berth"), 300)
            for what in ("status, all late", "status, all ready", "watch")
        ),
    ),
    "short": tuple(
        Bar(("facts", STATE), limit * _TOLERATED["facts"])
        if what == STATE
        else Bar(("cpu", what), limit * _TOLERATED["cpu"], ("cpu", BASE))
        for what, limit in json.loads(RELEASED.read_text(encoding="utf-8")).items()
    ),
}
"""Bars by part."""


def measured(part: str, engineers: int, document: Mapping[str, Any]) -> Iterator[Measured]:
    """Yield the figures of a run that have a bar, and were measured."""
    for bar in BARS.get(part, ()):
        value = _at(document, bar.figure)
        by = _at(document, bar.by) if bar.by else 1.0
        if value is None or not by or bar.size not in (None, engineers):
            continue
        kind, name = bar.figure[:2]
        what = _PREFIXES.get(kind, "") + name + (f" / {bar.by[-1]}" if bar.by else "")
        yield Measured(what, value / by, bar.limit, "×" if bar.by else _UNITS[kind])


def ratios(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of the short benchmark that a release keeps."""
    cpu = document["cpu"]
    found = {what: round(seconds / cpu[BASE], 2) for what, seconds in cpu.items() if what != BASE}
    return found | {STATE: document["facts"][STATE]}


def _at(document: Mapping[str, Any], figure: Figure) -> float | None:
    found: Any = document
    for key in figure:
        found = found.get(key, {})
    return found if isinstance(found, int | float) else None
