"""Rules of a berth's home: its StorageClass, and the disks that nodes of the head's pool take."""

from dataclasses import dataclass

from berth.components.core.rules import Rules
from berth.components.core.types import parse_quantity
from berth.components.gke import SHARE_CLASSES
from berth.components.ray.settings import BerthShape
from berth.components.ray.storage.home import Home
from berth.components.sharing import Pool


@dataclass(frozen=True)
class PlacedHome:
    """A home, and the pool of the head that mounts it."""

    home: Home
    pool: Pool

    @property
    def on_persistent_disks(self) -> bool:
        """Whether machines of the pool take Persistent Disks; unknown machines may."""
        disks = self.pool.settings.machine.series.boot_disks
        return not disks or any(disk.startswith("pd-") for disk in disks)


HOMES = Rules[PlacedHome](BerthShape)
"""Rules of the home of a RayCluster."""


@HOMES.problem("home.size")
def home_below_the_least_share(placed: PlacedHome) -> str | None:
    """A StorageClass of Filestore has a least size."""
    home = placed.home
    share = SHARE_CLASSES.get(home.storage_class or "")
    if share is None or parse_quantity(home.size) >= parse_quantity(share["least"]):
        return None
    return (
        f"{home.size} is less than {share['least']}, the smallest Filestore volume of"
        f" {home.storage_class}; take a class of disks"
    )


@HOMES.problem("home")
def home_on_a_disk_that_machines_do_not_take(placed: PlacedHome) -> str | None:
    """GKE's default StorageClass makes a Persistent Disk."""
    if placed.home.storage_class or placed.on_persistent_disks:
        return None
    return (
        f"the head is on pool {placed.pool.name!r}, whose machines take no Persistent Disks, and"
        " GKE's default class makes one; name a class of Hyperdisks (home.storageClass), or take"
        " another head.pool"
    )
