"""Where a node pool's machines come from: on demand, a reservation, flex-start, or spot."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from berth.components.core.settings import Settings
from berth.components.core.types import Duration, NonEmpty, ProjectId


class Capacity(Settings):
    """Where a pool's machines come from. Only the keys of its kind are given."""

    kind: Literal["on-demand", "reservation", "flex-start", "spot"] = "on-demand"
    """`on-demand`: when there are any. `reservation`: machines that were set aside. `flex-start`: queued for, up to seven
    days, then taken away. `spot`: cheap, and taken away at any time."""
    reservation: NonEmpty | None = None
    """The reservation's name."""
    block: NonEmpty | None = None
    """A block of the reservation: machines that are close together."""
    project: ProjectId | None = None
    """Project that owns a shared reservation. Default: the environment's."""
    queued: bool = False
    """Flex-start with queued provisioning: all machines of a request at once (ProvisioningRequest)."""
    max_run_duration: Duration | None = None
    """Flex-start: for how long machines stay, at most and by default 7d."""


def _named(value: Any) -> Any:
    """`capacity: spot` is short for `capacity: {kind: spot}`."""
    return {"kind": value} if isinstance(value, str) else value


CapacitySettings = Annotated[Capacity, BeforeValidator(_named)]
"""Where a pool's machines come from; a kind by itself is short for a mapping with nothing else."""
