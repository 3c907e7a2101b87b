"""Disks and shares of nodes: claims on GKE's StorageClasses get a volume.

A disk or share of a simulated node is a name. On the real node it is a folder, since this machine
has no disks to attach.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.lab.api import Api

DISKS = "pd.csi.storage.gke.io"
SHARES = "filestore.csi.storage.gke.io"
DRIVERS = (DISKS, SHARES)
CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"

_NODE = "volume.kubernetes.io/selected-node"
_BY = "volume.kubernetes.io/storage-provisioner"
_MADE_BY = "pv.kubernetes.io/provisioned-by"
_HOSTNAME = "kubernetes.io/hostname"
_FOR_EVERYBODY = 0o777


@dataclass(frozen=True)
class RealNode:
    """The node that is real now, and its disks."""

    name: str
    """Name of the node; "" for none."""
    disks: Path
    """Folder of the disks."""


def volume_for(claim: Mapping[str, Any], real: RealNode) -> dict[str, Any] | None:
    """Return the volume to create for a claim; None while nothing waits for one."""
    metadata = claim["metadata"]
    spec = claim["spec"]
    notes = metadata.get("annotations") or {}
    driver = notes.get(_BY)
    if (
        driver not in DRIVERS
        or _NODE not in notes
        or spec.get("volumeName")
        or "deletionTimestamp" in metadata
    ):
        return None
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: driver}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            **(
                _folder(real, name)
                if notes[_NODE] == real.name
                else {"csi": _attached(driver, name)}
            ),
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.get("storageClassName"),
        },
    }


def _folder(real: RealNode, name: str) -> dict[str, Any]:
    """Return the part of a volume that says where it is, on the real node."""
    there = [{"key": _HOSTNAME, "operator": "In", "values": [real.name]}]
    return {
        "hostPath": {"path": str(real.disks / name), "type": "Directory"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": there}]}},
    }


def _attached(driver: str, name: str) -> dict[str, Any]:
    """Return the part of a volume that says where it is, on a simulated node."""
    if driver == DISKS:
        return {
            "driver": DISKS,
            "volumeHandle": f"projects/lab/zones/lab/disks/{name}",
            "fsType": "ext4",
        }
    handle = f"modeInstance/lab/{name}/vol1"
    return {
        "driver": SHARES,
        "volumeHandle": handle,
        "volumeAttributes": {"ip": "10.0.0.2", "volume": "vol1"},
    }


def is_over(volume: Mapping[str, Any]) -> bool:
    """Return whether the driver deletes a volume: its claim is gone."""
    notes = volume["metadata"].get("annotations") or {}
    released = (volume.get("status") or {}).get("phase") == "Released"
    return (
        released
        and notes.get(_MADE_BY) in DRIVERS
        and "deletionTimestamp" not in volume["metadata"]
    )


def play(api: Api, path: str, item: Mapping[str, Any], real: RealNode) -> None:
    """Create the volume of a claim, or delete a volume that is over, with the folder behind it.

    Args:
        api: the cluster.
        path: collection of the claim or volume.
        item: the claim or volume.
        real: the real node.
    """
    if path == VOLUMES:
        if is_over(item):
            if "hostPath" in item["spec"]:
                shutil.rmtree(real.disks / item["metadata"]["name"], ignore_errors=True)
            api.delete(f"{VOLUMES}/{item['metadata']['name']}")
    elif volume := volume_for(item, real):
        if "hostPath" in volume["spec"]:
            folder = Path(volume["spec"]["hostPath"]["path"])
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(_FOR_EVERYBODY)
        api.create(VOLUMES, volume)
