"""Lifecycle of berths: working hours, idle time, expiry, and the keeper that enforces them.

Belongs here: the settings of a lifecycle, the keeper's objects, and the component, which imports
Pulumi and is imported by its module. Does not belong here: what the keeper decides and does in its
pod (components/programs).
"""

from berth.components.lifecycle.keeper_settings import KeeperSettings
from berth.components.lifecycle.life import Life, by_kueue, life_of
from berth.components.lifecycle.manifests import (
    KEEPER_NAME,
    KEEPER_USER,
    keeper_access,
    keeper_manifests,
    keeper_peers,
)
from berth.components.lifecycle.rules import lifecycle_problems
from berth.components.lifecycle.settings import (
    Lifecycle,
    LifecycleShape,
    complete_lifecycle,
)

__all__ = [
    "KEEPER_NAME",
    "KEEPER_USER",
    "KeeperSettings",
    "Life",
    "Lifecycle",
    "LifecycleShape",
    "by_kueue",
    "complete_lifecycle",
    "keeper_access",
    "keeper_manifests",
    "keeper_peers",
    "life_of",
    "lifecycle_problems",
]
