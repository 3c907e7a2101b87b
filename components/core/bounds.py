"""A number, or the bounds between which an autoscaler chooses it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from berth.components.core.settings import Settings
from berth.components.core.types import Duration
from berth.components.programs.lifetimes import parse_duration

_MOST = 1000


class Bounds(Settings):
    """Bounds for an autoscaler."""

    min: Annotated[int, Field(examples=[1], ge=0, le=_MOST, strict=True)] = 0
    """Smallest number."""
    max: Annotated[int, Field(examples=[4], ge=1, le=_MOST, strict=True)]
    """Largest number."""

    @model_validator(mode="after")
    def _ordered(self) -> Bounds:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is more than max ({self.max})")
        return self


class WorkerBounds(Bounds):
    """Bounds for Ray's autoscaler."""

    max: Annotated[int, Field(examples=[4], ge=0, le=_MOST, strict=True)]
    """Largest number; 0 for no workers for now."""
    start: Annotated[
        Annotated[int, Field(ge=0, le=_MOST, strict=True)] | None, Field(examples=[1])
    ] = None
    """Number at the start, before anything asks for more or is idle for long. Default:
    `min`."""
    idle_timeout: Annotated[Duration | None, Field(examples=["5m"])] = None
    """Idle time after which a worker beyond `min` goes. Default: Ray's, 60s. A
    change restarts the RayCluster."""

    @property
    def at_start(self) -> int:
        """Number at the start."""
        return self.min if self.start is None else self.start

    @property
    def idle_timeout_seconds(self) -> int | None:
        """`idle_timeout` in seconds; None for Ray's own."""
        return None if self.idle_timeout is None else parse_duration(self.idle_timeout)

    @model_validator(mode="after")
    def _start_between(self) -> WorkerBounds:
        if not self.min <= self.at_start <= self.max:
            raise ValueError(
                f"start ({self.start}) is not between min ({self.min}) and max ({self.max})"
            )
        return self


def _which(value: Any) -> str:
    """Return the form in which a number is written, so that errors name that form."""
    return "bounds" if isinstance(value, (dict, Bounds)) else "count"


CountOrBounds = Annotated[
    Annotated[int, Field(ge=0, le=_MOST, strict=True), Tag("count")]
    | Annotated[Bounds, Tag("bounds")],
    Discriminator(_which),
]
"""Number of things: a number, or `{min, max}`. The limit guards against a slip of the hand;
GKE's are elsewhere."""

WorkerCount = Annotated[
    Annotated[int, Field(ge=0, le=_MOST, strict=True), Tag("count")]
    | Annotated[WorkerBounds, Tag("bounds")],
    Discriminator(_which),
]
"""Number of workers: a number, or `{min, max, start, idleTimeout}`."""


def at_least(value: int | Bounds) -> int:
    """Return the smallest number."""
    return value.min if isinstance(value, Bounds) else value


def at_most(value: int | Bounds) -> int:
    """Return the largest number."""
    return value.max if isinstance(value, Bounds) else value
