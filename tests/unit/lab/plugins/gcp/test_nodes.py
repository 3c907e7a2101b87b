from collections.abc import Callable
from typing import Any

import pytest

from berth.lab.plugins.gcp.nodes import expected, labels, manifest, resize, taints
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.store import StoredRecord

from .conftest import A4, ZONE

Golden = Callable[[str, Any], None]

L4 = [
    {
        "type": "nvidia-l4",
        "count": 1,
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"},
    }
]


def pool(config: dict[str, Any], name: str = "pool", **more: Any) -> StoredRecord:
    inputs = {"name": name, "location": ZONE, "nodeConfig": config} | more
    return StoredRecord(
        f"projects/berth-lab/locations/{ZONE}/clusters/fleet/nodePools/{name}", inputs
    )


@pytest.mark.parametrize(
    ("case", "config", "more"),
    [
        ("a4", A4 | {"taints": [{"key": "team", "value": "research", "effect": "NO_EXECUTE"}]}, {}),
        (
            "g2-own-device-plugin",
            {"machineType": "g2-standard-12", "guestAccelerators": L4, "spot": True},
            {},
        ),
        ("cpu", {"machineType": "n2-standard-16", "diskSizeGb": 200}, {"maxPodsPerNode": 64}),
    ],
)
def test_nodes_are_as_gke_makes_them(
    golden: Golden, case: str, config: dict[str, Any], more: dict[str, Any]
) -> None:
    golden(f"gke/node-{case}", manifest(pool(config, case, **more), ZONE, 0, "v1.36.3"))


def test_no_node_brings_gpus_before_its_device_plugin_does() -> None:
    status = manifest(pool(A4), ZONE, 0, "v1.36.3")["status"]
    assert (
        set(status["capacity"])
        == set(status["allocatable"])
        == {"cpu", "memory", "ephemeral-storage", "pods"}
    )


def test_names_are_stable_unique_and_no_longer_than_kubernetes_allows() -> None:
    record = pool(A4, "a-pool-with-the-longest-name-gke-allows-x")
    resize(record, {ZONE: 50, "us-central1-c": 50})
    names = list(expected(record))
    assert len(set(names)) == 100
    assert all(name.startswith("gke-fleet-a-pool-with") and len(name) <= 63 for name in names)
    again = pool(A4, "a-pool-with-the-longest-name-gke-allows-x")
    resize(again, {ZONE: 50, "us-central1-c": 50})
    assert list(expected(again)) == names


def test_the_newest_nodes_go_first_and_come_back_under_their_names() -> None:
    record = pool(A4)
    resize(record, {ZONE: 4})
    four = list(expected(record))
    resize(record, {ZONE: 2})
    assert list(expected(record)) == four[:2]
    resize(record, {ZONE: 3})
    assert list(expected(record)) == four[:3]


def test_a_pool_that_taints_its_gpus_itself_is_not_tainted_twice() -> None:
    own = {"key": "nvidia.com/gpu", "value": "mine", "effect": "NO_SCHEDULE"}
    assert taints(pool(A4 | {"taints": [own]})) == [
        {"key": "nvidia.com/gpu", "value": "mine", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize(
    ("image", "system"), [(None, "cos"), ("COS_CONTAINERD", "cos"), ("ubuntu_containerd", "ubuntu")]
)
def test_the_image_shows_in_the_systems_label(image: str | None, system: str) -> None:
    record = pool(A4 | ({"imageType": image} if image else {}))
    assert labels(record, ZONE, "node")["cloud.google.com/gke-os-distribution"] == system


@pytest.mark.parametrize(
    ("config", "label", "provisioning"),
    [
        ({"flexStart": True}, "cloud.google.com/gke-flex-start", "standard"),
        ({"spot": True}, "cloud.google.com/gke-spot", "spot"),
    ],
)
def test_nodes_say_how_they_were_had(config: dict[str, Any], label: str, provisioning: str) -> None:
    found = labels(pool(A4 | config), ZONE, "node")
    assert (found[label], found["cloud.google.com/gke-provisioning"]) == ("true", provisioning)
    assert label not in labels(pool(A4), ZONE, "node")


def test_the_boot_disk_of_an_unknown_machine_is_gkes_own() -> None:
    assert PoolInputs({"nodeConfig": {"machineType": "x9-standard-8"}}).disk_type == "pd-balanced"
