"""Filestore volumes: claims of a berth that the head and all workers mount together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from berth.components.core.manifest import Manifest
from berth.components.core.problems import Path, Problem
from berth.components.core.table import beside, broken
from berth.components.core.types import parse_quantity
from berth.components.gke import SHARE_CLASSES, own_class
from berth.components.ray.storage import Home, claim

if TYPE_CHECKING:
    from berth.components.ray.volumes import Volume

DEFAULT_CLASS = "standard-rwx"
"""GKE's StorageClass of basic shares on hard disks, the cheapest ones."""

PREFIX = "share-"
"""Beginning of the names of shares' claims, before the volume's name."""

_OF_DISKS = ("hyperdisk-", "premium-rwo", "standard-rwo")
"""Beginnings of the names of GKE's StorageClasses of disks, which one node mounts at a time
(https://docs.cloud.google.com/kubernetes-engine/docs/concepts/persistent-volumes)."""


def shares_of(volumes: Mapping[str, Volume]) -> dict[str, Volume]:
    """Return the volumes that are Filestore's, by name."""
    return {name: volume for name, volume in volumes.items() if volume.filestore}


def claim_name(volume: str) -> str:
    """Return the name of the claim of a share."""
    return f"{PREFIX}{volume}"


def share_claims(
    volumes: Mapping[str, Volume], namespace: str, labels: dict[str, str], *, own_classes: bool
) -> list[Manifest]:
    """Return the claims of a berth's shares."""
    return [
        claim(
            claim_name(name),
            namespace,
            labels,
            "ReadWriteMany",
            str(volume.filestore),
            own_class(volume.storage_class or DEFAULT_CLASS) if own_classes else volume.storage_class or DEFAULT_CLASS,
        )
        for name, volume in shares_of(volumes).items()
    ]


def keeps(home: Home | None, volumes: Mapping[str, Volume]) -> bool:
    """Return whether the home or a Filestore volume stays when the berth goes."""
    return bool(home and home.retain) or any(share.retain for share in shares_of(volumes).values())


def share_problems(home: Home | None, volumes: Mapping[str, Volume], path: Path) -> Iterable[Problem]:
    """Yield what no StorageClass can have, and shares of which some go and others stay."""
    retained: dict[Path, bool] = {("home",): home.retain} if home else {}
    for name, share in shares_of(volumes).items():
        where = (*path, "volumes", name)
        retained["volumes", name] = share.retain
        storage_class = share.storage_class or DEFAULT_CLASS
        least = SHARE_CLASSES[storage_class].least if storage_class in SHARE_CLASSES else "0"
        too_small = parse_quantity(str(share.filestore)) < parse_quantity(least)
        facts = {"storage_class": storage_class, "least": least, "too_small": too_small, "classes": [*SHARE_CLASSES]}
        of_disks = storage_class.startswith(_OF_DISKS)
        yield from broken(beside(__file__)["shares"], where, share=share, of_disks=of_disks, **facts)
    if len(set(retained.values())) > 1:
        stays = next(where for where, retain in retained.items() if retain)
        for where in (where for where, retain in retained.items() if not retain):
            yield from broken(beside(__file__)["retained"], (*path, *where), stays=".".join(map(str, stays)))
