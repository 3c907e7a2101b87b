"""GPU sharing: modes, pools with their offers, node labels, the device plugin's config."""

from berth.components.sharing import rules
from berth.components.sharing.device_plugin import (
    config_entries,
    label_command,
    node_labels,
    plugin_config_map,
    serving_labels,
)
from berth.components.sharing.disturbance import (
    KEEPS,
    Occupants,
    config_changes,
    effects_of_node_labels,
    lines_of_configs,
    lines_of_labels,
)
from berth.components.sharing.modes import (
    Offer,
    SharingProfile,
    TimeSlicing,
)
from berth.components.sharing.pools import Pool, Pools, offered_pools
from berth.components.sharing.settings import SharingSettings

__all__ = [
    "KEEPS",
    "RULES",
    "WARNINGS",
    "Occupants",
    "Offer",
    "Pool",
    "Pools",
    "SharingProfile",
    "SharingSettings",
    "TimeSlicing",
    "config_changes",
    "config_entries",
    "effects_of_node_labels",
    "label_command",
    "lines_of_configs",
    "lines_of_labels",
    "node_labels",
    "offered_pools",
    "plugin_config_map",
    "serving_labels",
]

RULES = (rules.problems,)
"""Rules of what no pool can share, and of pools that no autoscaler can grow."""

WARNINGS = (rules.warnings,)
"""Rules of settings that work, but likely not as intended."""
