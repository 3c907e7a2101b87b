"""GPU sharing: modes, pools with their offers, node labels, the device plugin's config."""

from berth.components.sharing import rules
from berth.components.sharing.device_plugin import (
    config_map,
    entries,
    label_command,
    node_labels,
    serving_labels,
)
from berth.components.sharing.disturbance import (
    KEEPS,
    Occupants,
    config_changes,
    of_configs,
    of_labels,
    of_node_labels,
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
from berth.components.sharing.pools import Pool, Pools, SharingSettings, offered

RULES = (rules.problems,)
"""Rules of what no pool can share, and of pools that no autoscaler can grow."""

WARNINGS = (rules.warnings,)
"""Rules of settings that work, but likely not as intended."""
