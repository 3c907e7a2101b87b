"""Lifecycle of berths: working hours, idle time, expiry, and the keeper that enforces them.

Belongs here: the settings of a lifecycle, the keeper's objects, and the component. Does not belong
here: what the keeper decides and does in its pod (components/programs).
"""

from typing import TYPE_CHECKING, Any

from berth.components.lifecycle.life import PERSON, Life, life_of
from berth.components.lifecycle.manifests import KEEPER_USER, keeper_access, keeper_peers, with_lifecycle
from berth.components.lifecycle.settings import KeeperSettings, Lifecycle, LifecycleShape, complete, lifecycle_problems

if TYPE_CHECKING:
    from berth.components.lifecycle.component import Keeper, KeeperInputs

__all__ = [
    "KEEPER_USER",
    "PERSON",
    "Keeper",
    "KeeperInputs",
    "KeeperSettings",
    "Life",
    "Lifecycle",
    "LifecycleShape",
    "complete",
    "keeper_access",
    "keeper_peers",
    "life_of",
    "lifecycle_problems",
    "with_lifecycle",
]


def __getattr__(name: str) -> Any:
    """Import the component, and with it pulumi, on first use."""
    if name in ("Keeper", "KeeperInputs"):
        from berth.components.lifecycle import component  # noqa: PLC0415 - see above

        return getattr(component, name)
    raise AttributeError(name)
