"""A cluster's devices and the claims on them, asked from its API server."""

from __future__ import annotations

from berth.components.cluster.api import ClusterApi
from berth.components.cluster.devices import NOTHING, Inventory, inventory
from berth.components.cluster.resource_api import GROUP, served


def inventory_of(api: ClusterApi) -> Inventory:
    """What nodes publish and who claims it; nothing where the server has no such kinds.

    Raises:
        ClusterError: the API server can't be asked, or does not let this user see it.
    """
    version = served(api)
    if version is None:
        return NOTHING
    kinds = ("resourceslices", "resourceclaims", "deviceclasses", "resourceclaimtemplates")
    return inventory(*(api.list(f"{GROUP}/{version}/{kind}")[0] for kind in kinds))
