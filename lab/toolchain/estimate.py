"""Time that is left of a build, from recorded weights and the pace so far."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from berth.lab.toolchain.tools import Tool

CORES = 2
"""Cores of the machine on which the weights were recorded."""

_TRUST = 60.0
"""Seconds of weight after which this machine's own pace counts as much as the expected one."""

_MINUTE = 60.0


def roughly(seconds: float) -> str:
    """Return a time that is left, as a person says it."""
    if seconds < _MINUTE:
        return "less than a minute"
    return f"about {round(seconds / _MINUTE)} min"


@dataclass
class Estimate:
    """Estimate that follows the tools as they are started and finished."""

    tools: list[Tool]
    clock: Callable[[], float] = time.monotonic
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    begin: float = 0.0
    building: dict[Tool, float] = field(default_factory=dict)
    pending: list[Tool] = field(default_factory=list)
    pace: float = 1.0

    def __post_init__(self) -> None:
        self.begin = self.clock()
        self.pending = list(self.tools)
        self.pace = self._expected = max(CORES / self.cores, 0.5)

    def started(self, tool: Tool) -> None:
        """Note that a tool is being built."""
        self.building[tool] = self.clock()

    def finished(self, tool: Tool) -> float:
        """Note that a tool is built; return how long that took."""
        now = self.clock()
        since = self.building.pop(tool, now)
        if tool in self.pending:
            self.pending.remove(tool)
        built = _weight(self.tools) - _weight(self.pending) + self._begun(now)
        self.pace = (now - self.begin + _TRUST * self._expected) / (built + _TRUST)
        return now - since

    def left(self) -> float:
        """Return the seconds that the rest takes at this pace."""
        return (_weight(self.pending) - self._begun(self.clock())) * self.pace

    def _begun(self, now: float) -> float:
        """Return the weight that is built of the tools in progress, which share the cores."""
        shared = self.pace * max(1, len(self.building))
        return sum(min((now - since) / shared, tool.seconds * 0.9) for tool, since in self.building.items())

    def __str__(self) -> str:
        """Return the number of tools and the time that are left."""
        return f"{len(self.pending)} to go, {roughly(self.left())} left" if self.pending else "all built"


def _weight(tools: Iterable[Tool]) -> float:
    return sum(tool.seconds for tool in tools)
