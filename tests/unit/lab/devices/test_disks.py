"""Volumes of claims on GKE's StorageClass."""

from __future__ import annotations

from typing import Any

import pytest

from berth.lab.devices.disks import PROVISIONER, is_over, volume_for

NOTES = {
    "volume.kubernetes.io/storage-provisioner": PROVISIONER,
    "volume.kubernetes.io/selected-node": "node",
}


def claim(notes: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "home", "namespace": "berth-a", "uid": "1", "annotations": notes},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
            "storageClassName": "standard-rwo",
            **spec,
        },
    }


def test_a_claim_gets_a_volume_once_a_pod_with_it_has_a_node() -> None:
    volume = volume_for(claim(NOTES))
    assert volume
    assert volume["spec"]["capacity"] == {"storage": "5Gi"}
    assert volume["spec"]["claimRef"]["uid"] == "1"


@pytest.mark.parametrize(
    "waiting",
    [
        claim(NOTES | {"volume.kubernetes.io/storage-provisioner": "other"}),
        claim({"volume.kubernetes.io/storage-provisioner": PROVISIONER}),
        claim(NOTES, volumeName="pvc-1"),
    ],
)
def test_other_claims_get_none(waiting: dict[str, Any]) -> None:
    assert volume_for(waiting) is None


def test_a_volume_goes_with_its_claim() -> None:
    volume: dict[str, Any] = volume_for(claim(NOTES)) or {}
    assert not is_over(volume | {"status": {"phase": "Bound"}})
    assert is_over(volume | {"status": {"phase": "Released"}})
