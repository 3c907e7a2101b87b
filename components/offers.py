"""What a pool of the settings should advertise."""

from __future__ import annotations

from stacks.settings.environment import PoolSettings
from stacks.settings.pools import offered
from stacks.settings.sharing import Offer, Profiles

__all__ = ["Offer", "offers_of"]


def offers_of(pool: PoolSettings, profiles: Profiles) -> list[Offer]:
    """What every node of a pool should advertise; empty where it has no GPUs."""
    found = offered({"pool": pool}, profiles)["pool"].offer
    return [found] if found else []
