"""Volumes of claims on GKE's StorageClass."""

import stat
from pathlib import Path
from typing import Any, cast

import pytest

from berth.lab.api import Api
from berth.lab.devices.disks import (
    CLAIMS,
    DISKS,
    SHARES,
    VOLUMES,
    RealNode,
    play,
    volume_for,
)

NOTES = {
    "volume.kubernetes.io/storage-provisioner": DISKS,
    "volume.kubernetes.io/selected-node": "node",
}

REAL = RealNode("real", Path("/disks"))


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


@pytest.mark.parametrize(
    "waiting",
    [
        claim(NOTES | {"volume.kubernetes.io/storage-provisioner": "other"}),
        claim({"volume.kubernetes.io/storage-provisioner": DISKS}),
        claim(NOTES, volumeName="pvc-1"),
    ],
)
def test_other_claims_get_none(waiting: dict[str, Any]) -> None:
    assert volume_for(waiting, REAL) is None


@pytest.mark.parametrize(
    ("driver", "where"),
    [
        (
            DISKS,
            {
                "driver": DISKS,
                "volumeHandle": "projects/lab/zones/lab/disks/pvc-1",
                "fsType": "ext4",
            },
        ),
        (
            SHARES,
            {
                "driver": SHARES,
                "volumeHandle": "modeInstance/lab/pvc-1/vol1",
                "volumeAttributes": {"ip": "10.0.0.2", "volume": "vol1"},
            },
        ),
    ],
)
def test_a_volume_of_a_simulated_node_is_bound_to_its_claim_and_is_no_folder(
    driver: str, where: dict[str, Any], tmp_path: Path
) -> None:
    api = Calls()
    real = RealNode("real", tmp_path / "disks")
    waiting = claim(NOTES | {"volume.kubernetes.io/storage-provisioner": driver})
    play(cast("Api", api), CLAIMS, waiting, real)
    (volume,) = api.created
    spec = volume["spec"]
    assert (spec["csi"], spec["capacity"]) == (where, {"storage": "5Gi"})
    assert (spec["accessModes"], spec["storageClassName"]) == (["ReadWriteOnce"], "standard-rwo")
    owner = spec["claimRef"]
    assert (owner["namespace"], owner["name"], owner["uid"]) == ("berth-a", "home", "1")
    assert "hostPath" not in spec, "this machine has no disk for it"
    assert not real.disks.exists()
    play(cast("Api", api), VOLUMES, volume | {"status": {"phase": "Bound"}}, real)
    assert api.deleted == []
    play(cast("Api", api), VOLUMES, volume | {"status": {"phase": "Released"}}, real)
    assert api.deleted == ["/api/v1/persistentvolumes/pvc-1"]


def test_a_volume_of_another_provisioner_stays(tmp_path: Path) -> None:
    api = Calls()
    notes = {"pv.kubernetes.io/provisioned-by": "nfs.csi.k8s.io"}
    volume = {
        "metadata": {"name": "pvc-1", "annotations": notes},
        "status": {"phase": "Released"},
    }
    play(cast("Api", api), VOLUMES, volume, RealNode("real", tmp_path))
    assert api.deleted == []


class Calls:
    """API that takes note of what is created and deleted."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.deleted: list[str] = []

    def create(self, _path: str, item: dict[str, Any]) -> None:
        self.created.append(item)

    def delete(self, path: str) -> None:
        self.deleted.append(path)


def test_a_disk_of_the_real_node_is_a_folder_that_goes_with_the_volume(tmp_path: Path) -> None:
    api = Calls()
    real = RealNode("real", tmp_path / "disks")
    play(
        cast("Api", api),
        CLAIMS,
        claim(NOTES | {"volume.kubernetes.io/selected-node": "real"}),
        real,
    )
    (volume,) = api.created
    folder = tmp_path / "disks" / "pvc-1"
    assert volume["spec"]["hostPath"] == {"path": str(folder), "type": "Directory"}
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["real"]}
    ]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777, "the container's user is not root"
    (folder / "file").write_text("data")
    play(cast("Api", api), VOLUMES, volume | {"status": {"phase": "Bound"}}, real)
    assert (folder / "file").exists()
    play(cast("Api", api), VOLUMES, volume | {"status": {"phase": "Released"}}, real)
    assert not folder.exists()
    assert api.deleted == ["/api/v1/persistentvolumes/pvc-1"]
