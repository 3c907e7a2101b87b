from __future__ import annotations

from berth.lab.devices.node_features import found

GPUS = {"cloud.google.com/gke-accelerator": "nvidia-b200", "cloud.google.com/gke-accelerator-count": "8"}
FEATURES = "feature.node.kubernetes.io/"


def test_a_cos_node_with_gpus_has_the_labels_that_the_recordings_give_one() -> None:
    labels = found(GPUS | {"cloud.google.com/gke-os-distribution": "cos"})
    recorded = {
        FEATURES + "pci-10de.present": "true",
        FEATURES + "kernel-version.full": "6.12.55",
        FEATURES + "system-os_release.ID": "cos",
        FEATURES + "system-os_release.VERSION_ID": "125",
    }
    assert recorded.items() <= labels.items()
    assert labels[FEATURES + "kernel-version.minor"] == "12"
    assert labels[FEATURES + "system-os_release.VERSION_ID.major"] == "125"
    assert FEATURES + "system-os_release.VERSION_ID.minor" not in labels


def test_a_node_without_gpus_has_no_pci_label() -> None:
    labels = found({"cloud.google.com/gke-os-distribution": "ubuntu"})
    assert FEATURES + "pci-10de.present" not in labels
    assert labels[FEATURES + "system-os_release.VERSION_ID.minor"] == "04"
    assert labels[FEATURES + "kernel-version.full"].startswith("6.8.0-")
    assert labels[FEATURES + "kernel-version.revision"] == "0"
