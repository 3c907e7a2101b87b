"""Rules of a RayCluster's volumes: their folders, Filestore shares, and scratch on local SSDs."""

from collections.abc import Iterator

from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import parse_quantity
from berth.components.gke import SHARE_CLASSES
from berth.components.ray.placed import PlacedCluster
from berth.components.ray.settings import BerthShape
from berth.components.ray.storage.volumes import folders_overlap, shares_of

_CLASSES_OF_DISKS = ("hyperdisk-", "premium-rwo", "standard-rwo")
"""Beginnings of the names of GKE's StorageClasses of disks, which one node mounts at a time
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/persistent-volumes)."""

VOLUMES = Rules[PlacedCluster](BerthShape)
"""Rules of the volumes of a RayCluster."""


@VOLUMES.problem("volumes.*.storageClass")
def share_of_a_class_of_disks(placed: PlacedCluster) -> Iterator[Breach]:
    """Workers on several nodes mount a share."""
    for name, share in shares_of(placed.cluster.volumes).items():
        storage_class = share.class_of_share
        if storage_class.startswith(_CLASSES_OF_DISKS):
            yield Breach(
                f"{storage_class} is a class of disks, which one node mounts at a time: workers on"
                f" other nodes could not start; take one of {', '.join(SHARE_CLASSES)}",
                at=("volumes", name, "storageClass"),
            )


@VOLUMES.problem("volumes.*.filestore")
def share_below_the_least_size(placed: PlacedCluster) -> Iterator[Breach]:
    """A StorageClass of Filestore has a least size."""
    for name, share in shares_of(placed.cluster.volumes).items():
        storage_class = share.class_of_share
        if storage_class not in SHARE_CLASSES:
            continue
        least = SHARE_CLASSES[storage_class]["least"]
        if parse_quantity(str(share.filestore)) < parse_quantity(least):
            yield Breach(
                f"{share.filestore} is less than {least}, the smallest Filestore volume of"
                f" {storage_class}, which you would pay for; write {least}",
                at=("volumes", name, "filestore"),
            )


@VOLUMES.problem("home.retain", "volumes.*.retain")
def storage_that_goes_beside_storage_that_stays(placed: PlacedCluster) -> Iterator[Breach]:
    """A home or share that stays keeps the namespace, and with it all claims."""
    cluster = placed.cluster
    retained: dict[SettingPath, bool] = {}
    if cluster.home:
        retained["home",] = cluster.home.retain
    for name, share in shares_of(cluster.volumes).items():
        retained["volumes", name] = share.retain
    staying = [place for place, stays in retained.items() if stays]
    going = [place for place, stays in retained.items() if not stays]
    for place in going if staying else ():
        yield Breach(
            f"is false, but {'.'.join(map(str, staying[0]))} stays, and with it the namespace and"
            " all claims in it; write the same `retain` for both",
            at=(*place, "retain"),
        )


@VOLUMES.problem("volumes.*.at")
def folders_that_overlap(placed: PlacedCluster) -> Iterator[Breach]:
    """A volume hides what is at its folder."""
    folders: dict[str, str] = {}
    for name, volume in placed.cluster.volumes.items():
        overlapping = [
            other for other, folder in folders.items() if folders_overlap(folder, volume.at)
        ]
        if overlapping:
            first = overlapping[0]
            yield Breach(
                f"{volume.at} and {folders[first]} of volume {first!r} overlap; change one",
                at=("volumes", name, "at"),
            )
        folders[name] = volume.at


@VOLUMES.problem("volumes.*.scratch")
def scratch_without_local_ssds(placed: PlacedCluster) -> Iterator[Breach]:
    """Nodes of all pools of the workers have local SSDs for files of pods."""
    ssds = {name: placed.pools[name].settings.ephemeral_ssds for name in placed.cluster.pools}
    pool = min(ssds, key=lambda name: ssds[name])
    if ssds[pool]:
        return
    for name, volume in placed.cluster.volumes.items():
        if volume.scratch:
            yield Breach(
                f"nodes of pool {pool!r} have no local SSDs for files of pods; write `localSsds:"
                " {count: 2}` for the pool, or take another worker.pool",
                at=("volumes", name, "scratch"),
            )
