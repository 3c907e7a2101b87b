"""What the drivers of claimed devices publish of a simulated node."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest

from berth.lab.devices import gpu_devices, network_devices, topology
from berth.lab.devices.dra_nodes import driver_problem
from berth.lab.devices.resource_slices import changes, resource_slice
from berth.lab.plugins.gcp.interfaces import Interface, interfaces
from berth.lab.plugins.gcp.store import Record, Store

A4 = {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
    "cloud.google.com/gke-os-distribution": "cos",
    "node.kubernetes.io/instance-type": "a4-highgpu-8g",
}
CARDS = [Interface("net-1", 7, 1460, rdma=False), *[Interface("rdma", 7, 8896, rdma=True)] * 8]
NODE = "gke-fleet-a4-1234-abcd"
ROOT = "resource.kubernetes.io/pcieRoot"


def value(device: dict[str, Any], name: str) -> Any:
    (found,) = device["attributes"][name].values()
    return found


def test_a_nodes_nics_are_published_with_types_as_dranets() -> None:
    found = {value(each, "dra.net/ifName"): each for each in network_devices.devices(NODE, A4, CARDS)}
    assert sorted(found) == ["eth1", *(f"gpu{number}rdma0" for number in range(8))]
    first = found["gpu0rdma0"]
    assert first["name"] == "pci-0000-91-00-0"
    assert (
        first["attributes"].items()
        >= {
            "dra.net/rdma": {"bool": True},
            "dra.net/pciAddress": {"string": "0000:91:00.0"},
            "dra.net/numaNode": {"int": 0},
            "dra.net/mtu": {"int": 8896},
            "dra.net/state": {"string": "up"},
            "gce.dra.net/machineType": {"string": "a4-highgpu-8g"},
            "gce.dra.net/networkName": {"string": "rdma"},
            ROOT: {"string": "pci0000:8c"},
        }.items()
    )
    assert "dra.net/rdmaDevice" not in first["attributes"]
    assert (value(found["gpu6rdma0"], ROOT), value(found["gpu6rdma0"], "dra.net/numaNode")) == ("pci0000:c8", 1)
    assert value(found["eth1"], "dra.net/rdma") is False
    assert len({value(each, "dra.net/mac") for each in found.values()}) == 9


def test_hosts_of_a_group_share_a_block() -> None:
    one, other = (network_devices.devices(f"gke-a4-1234-{name}", A4, CARDS)[0] for name in ("aaaa", "bbbb"))
    assert value(one, "gce.dra.net/block") == value(other, "gce.dra.net/block")
    assert value(one, "gce.dra.net/host") != value(other, "gce.dra.net/host")


def test_a_machine_shows_the_cards_that_it_has() -> None:
    assert network_devices.devices(NODE, A4, []) == []
    assert network_devices.devices(NODE, {}, CARDS[1:]) == []


def test_a_gpu_and_the_nic_of_its_number_have_one_root_and_are_shared_by_two_gpus() -> None:
    nics = {value(each, "dra.net/ifName"): value(each, ROOT) for each in network_devices.devices(NODE, A4, CARDS)}
    gpus = {each["name"]: value(each, ROOT) for each in gpu_devices.devices(NODE, A4)}
    assert all(gpus[f"gpu-{number}"] == nics[f"gpu{number}rdma0"] for number in range(8))
    assert set(Counter(gpus.values()).values()) == {2}
    assert [slot.numa for slot in topology.slots(8)] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("gpus", [1, 4, 8, 16])
def test_no_two_devices_have_an_address_in_common(gpus: int) -> None:
    addresses = [address for slot in topology.slots(gpus) for address in (slot.gpu, slot.nic)]
    assert len(set(addresses)) == 2 * gpus


def test_a_nodes_gpus_are_published_with_types_as_nvidias() -> None:
    first, *rest = gpu_devices.devices(NODE, A4)
    assert len(rest) == 7
    assert first["capacity"] == {"memory": {"value": "183359Mi"}}
    assert (
        first["attributes"].items()
        >= {
            "type": {"string": "gpu"},
            "productName": {"string": "NVIDIA B200"},
            "architecture": {"string": "Blackwell"},
            "cudaComputeCapability": {"version": "10.0.0"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:8f:00.0"},
            ROOT: {"string": "pci0000:8c"},
        }.items()
    )
    assert "index" not in first["attributes"]
    assert gpu_devices.devices(NODE, A4) != gpu_devices.devices("another", A4), "other GPUs have other uuids"


@pytest.mark.parametrize(
    ("labels", "profiles"),
    [
        ({}, {}),
        ({gpu_devices.PARTITION: "1g.23gb"}, {"1g.23gb": 7}),
        ({"nvidia.com/mig.config": "all-3g.90gb"}, {}),
        (
            {"nvidia.com/mig.config": "all-3g.90gb", "nvidia.com/mig.config.state": "success"},
            {"3g.90gb": 2},
        ),
        (
            {"nvidia.com/mig.config": "all-balanced", "nvidia.com/mig.config.state": "success"},
            {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1},
        ),
        ({"nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success"}, {}),
    ],
)
def test_gpus_that_are_cut_show_instances_instead(labels: dict[str, str], profiles: dict[str, int]) -> None:
    found = gpu_devices.devices(NODE, A4 | labels)
    kinds = Counter(value(each, "profile") for each in found if value(each, "type") == "mig")
    assert kinds == {profile: 8 * count for profile, count in profiles.items()}
    assert len({each["name"] for each in found}) == len(found) == (8 * sum(profiles.values()) or 8)
    slices = Counter(
        (value(each, "parentUUID"), name) for each in found if profiles for name in each["capacity"] if name != "memory"
    )
    assert set(slices.values()) <= {1}, "no memory slice is in two instances"


@pytest.mark.parametrize(("mib", "text"), [(183359, "183359Mi"), (40960, "40Gi"), (1024, "1Gi")])
def test_memory_is_written_as_the_api_server_does(mib: int, text: str) -> None:
    assert gpu_devices.mebibytes(mib) == text


def plugin_pod(**variables: str) -> dict[str, Any]:
    env = [{"name": name, "value": text} for name, text in variables.items()]
    return {"metadata": {"name": "plugin", "uid": "1"}, "spec": {"containers": [{"name": "gpus", "env": env}]}}


def test_the_plugin_waits_for_a_driver_where_it_was_told_to_look() -> None:
    right, wrong = (plugin_pod(NVIDIA_DRIVER_ROOT=root) for root in ("/home/kubernetes/bin/nvidia/", "/"))
    assert driver_problem(right, A4, installed=True) == ""
    assert driver_problem(plugin_pod(), A4, installed=True) == ""
    assert "nvidiaDriverRoot" in driver_problem(wrong, A4, installed=True)
    assert driver_problem(wrong, A4 | {"berth/driver": "preinstalled"}, installed=True) == ""
    assert "does not run on it" in driver_problem(right, A4, installed=False)


def node(uid: str = "uid-1") -> dict[str, Any]:
    return {"metadata": {"name": NODE, "uid": uid}}


def there(each: dict[str, Any]) -> dict[str, Any]:
    stored = copy.deepcopy(each)
    stored["metadata"]["resourceVersion"] = "41"
    return stored


def test_a_changed_pool_is_its_next_generation() -> None:
    first = resource_slice(node(), "gpu.nvidia.com", gpu_devices.devices(NODE, A4))
    assert changes([first], []) == ([first], [], [])
    assert changes([first], [there(first)]) == ([], [], [])
    second = resource_slice(node(), "gpu.nvidia.com", gpu_devices.devices(NODE, A4)[1:])
    new, (changed,), gone = changes([second], [there(first)])
    assert (new, gone) == ([], [])
    assert changed["spec"]["pool"] == {"name": NODE, "generation": 2, "resourceSliceCount": 1}
    assert changed["metadata"]["resourceVersion"] == "41"
    assert changes([], [there(first)]) == ([], [], [first["metadata"]["name"]])


def test_slices_of_real_drivers_are_left_alone_and_a_node_made_anew_gets_a_new_one() -> None:
    ours = resource_slice(node(), "dra.net", [])
    real = there(ours)
    real["metadata"]["labels"] = {}
    assert changes([], [real]) == ([], [], [])
    again = resource_slice(node("uid-2"), "dra.net", [])
    assert changes([again], [there(ours)]) == ([], [], [ours["metadata"]["name"]])


def test_cards_come_from_the_pools_networks_alone(tmp_path: Any) -> None:
    store = Store(tmp_path)
    networks = "projects/p/global/networks"
    store.put(Record(f"{networks}/net-1", {"mtu": 8244}))
    store.put(
        Record(f"{networks}/rdma", {"networkProfile": "projects/p/global/networkProfiles/us-central1-b-vpc-roce"})
    )
    path = "projects/p/locations/us-central1-b/clusters/c/nodePools/a4"
    config = {"machineType": "a4-highgpu-8g"}
    extra = [{"network": f"{networks}/net-1"}, *[{"network": f"{networks}/rdma"}] * 8]
    found = interfaces(
        store, Record(path, {"nodeConfig": config, "networkConfig": {"additionalNodeNetworkConfigs": extra}})
    )
    assert [(card.network, card.mtu, card.rdma) for card in found] == [
        ("net-1", 8244, False),
        *[("rdma", 8896, True)] * 8,
    ]
    assert interfaces(store, Record(path, {"nodeConfig": config})) == []
    profile = {"nodeConfig": config, "networkConfig": {"acceleratorNetworkProfile": "auto"}}
    assert [card.rdma for card in interfaces(store, Record(path, profile))] == [False, *[True] * 8]
