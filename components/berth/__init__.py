"""Berth: one namespace with its isolation and a RayCluster, RayJob or RayService.

Belongs here: the order of a berth's parts. Does not belong here: what the parts are (the slices).
"""

from typing import TYPE_CHECKING, Any

from berth.components.berth.manifests import CONTRACT, BerthInputs, BerthManifests, berth_manifests

if TYPE_CHECKING:
    from berth.components.berth.component import Berth


def __getattr__(name: str) -> Any:
    """Import the component, and with it pulumi, on first use."""
    if name == "Berth":
        from berth.components.berth.component import Berth  # noqa: PLC0415 - see above

        return Berth
    raise AttributeError(name)
