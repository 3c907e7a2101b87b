"""GPU sharing: profiles, what pools offer with them, node labels, and the device plugin's config."""

from berth.components.sharing.device_plugin import config_map, label_command, node_labels, serving_labels
from berth.components.sharing.disturbance import KEEPS, Occupants, of_configs, of_labels
from berth.components.sharing.pools import Pool, Pools, offered
from berth.components.sharing.settings import WHOLE, Offer, Profiles, SharingProfile

__all__ = [
    "KEEPS",
    "WHOLE",
    "Occupants",
    "Offer",
    "Pool",
    "Pools",
    "Profiles",
    "SharingProfile",
    "config_map",
    "label_command",
    "node_labels",
    "of_configs",
    "of_labels",
    "offered",
    "serving_labels",
]
