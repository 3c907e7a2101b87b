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
    WHOLE,
    Mig,
    Mps,
    Offer,
    Profiles,
    SharingProfile,
    TimeSlicing,
)
from berth.components.sharing.pools import Pool, Pools, SharingSettings, offered_pools

RULES = (rules.problems,)
"""Rules of what no pool can share, and of pools that no autoscaler can grow."""

WARNINGS = (rules.warnings,)
"""Rules of settings that work, but likely not as intended."""
