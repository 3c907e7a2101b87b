"""Persistent Disks of simulated nodes: claims on GKE's StorageClass get a volume.

Answers to (read):
    https://github.com/kubernetes-csi/external-provisioner/blob/v5.3.0/README.md and
    https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/volume/persistentvolume/pv_controller.go
    (who provisions a claim, and who deletes a released volume)
Answers to (real): Kubernetes' own scheduler and controllers bind claims and volumes, protect claims
    in use, and mark volumes as released.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.lab.devices.api import Api

PROVISIONER = "pd.csi.storage.gke.io"
CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"

_NODE = "volume.kubernetes.io/selected-node"
_BY = "volume.kubernetes.io/storage-provisioner"
_MADE_BY = "pv.kubernetes.io/provisioned-by"


def volume_for(claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the volume to create for a claim; None while nothing waits for one."""
    metadata, spec = claim["metadata"], claim["spec"]
    notes = metadata.get("annotations") or {}
    if notes.get(_BY) != PROVISIONER or _NODE not in notes or spec.get("volumeName") or "deletionTimestamp" in metadata:
        return None
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: PROVISIONER}},
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
            "csi": {"driver": PROVISIONER, "volumeHandle": f"projects/lab/zones/lab/disks/{name}", "fsType": "ext4"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.get("storageClassName"),
        },
    }


def is_over(volume: Mapping[str, Any]) -> bool:
    """Return whether the driver deletes a volume: its claim is gone."""
    notes = volume["metadata"].get("annotations") or {}
    released = (volume.get("status") or {}).get("phase") == "Released"
    return released and notes.get(_MADE_BY) == PROVISIONER and "deletionTimestamp" not in volume["metadata"]


def play(api: Api, item: Mapping[str, Any]) -> None:
    """Create the volume of a claim, or delete a volume that is over."""
    if item["kind"] == "PersistentVolume":
        if is_over(item):
            api.delete(f"{VOLUMES}/{item['metadata']['name']}")
    elif volume := volume_for(item):
        api.create(VOLUMES, volume)
