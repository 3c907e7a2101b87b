"""Devices that the drivers of claims publish of a simulated node."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest

from berth.lab.devices.dra_devices import changes, gpus, mebibytes, nics, resource_slice, slots
from berth.lab.devices.dra_nodes import driver_problem
from berth.lab.plugins.gcp.interfaces import Interface

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


def test_nics_are_published_with_types_as_dranets() -> None:
    found = {value(device, "dra.net/ifName"): device for device in nics(NODE, A4, CARDS)}
    assert sorted(found) == ["eth1", *(f"gpu{number}rdma0" for number in range(8))]
    first = found["gpu0rdma0"]
    assert first["name"] == "pci-0000-91-00-0"
    expected = {
        "dra.net/rdma": {"bool": True},
        "dra.net/pciAddress": {"string": "0000:91:00.0"},
        "dra.net/numaNode": {"int": 0},
        "dra.net/mtu": {"int": 8896},
        "gce.dra.net/machineType": {"string": "a4-highgpu-8g"},
        "gce.dra.net/networkName": {"string": "rdma"},
        ROOT: {"string": "pci0000:8c"},
    }
    assert expected.items() <= first["attributes"].items()
    assert "dra.net/rdmaDevice" not in first["attributes"]
    assert (value(found["gpu6rdma0"], ROOT), value(found["gpu6rdma0"], "dra.net/numaNode")) == ("pci0000:c8", 1)
    assert len({value(device, "dra.net/mac") for device in found.values()}) == 9
    assert nics(NODE, A4, []) == nics(NODE, {}, CARDS[1:]) == [], "a machine shows the cards that it has"


def test_a_gpu_and_the_nic_of_its_number_have_one_root() -> None:
    roots = {value(device, "dra.net/ifName"): value(device, ROOT) for device in nics(NODE, A4, CARDS)}
    of_gpus = {device["name"]: value(device, ROOT) for device in gpus(NODE, A4)}
    assert all(of_gpus[f"gpu-{number}"] == roots[f"gpu{number}rdma0"] for number in range(8))
    assert set(Counter(of_gpus.values()).values()) == {2}
    assert [slot.numa for slot in slots(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len({address for slot in slots(16) for address in (slot.gpu, slot.nic)}) == 32


def test_gpus_are_published_with_types_as_nvidias() -> None:
    first, *rest = gpus(NODE, A4)
    assert len(rest) == 7
    assert first["capacity"] == {"memory": {"value": "183359Mi"}}
    expected = {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA B200"},
        "architecture": {"string": "Blackwell"},
        "cudaComputeCapability": {"version": "10.0.0"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:8f:00.0"},
        ROOT: {"string": "pci0000:8c"},
    }
    assert expected.items() <= first["attributes"].items()
    assert "index" not in first["attributes"]
    assert gpus(NODE, A4) != gpus("another", A4), "other GPUs have other uuids"
    assert [mebibytes(mib) for mib in (183359, 40960)] == ["183359Mi", "40Gi"]


CUT = {"nvidia.com/mig.config.state": "success"}


@pytest.mark.parametrize(
    ("labels", "profiles"),
    [
        ({}, {}),
        ({"cloud.google.com/gke-gpu-partition-size": "1g.23gb"}, {"1g.23gb": 7}),
        ({"nvidia.com/mig.config": "all-3g.90gb"}, {}),
        (CUT | {"nvidia.com/mig.config": "all-3g.90gb"}, {"3g.90gb": 2}),
        (CUT | {"nvidia.com/mig.config": "all-balanced"}, {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        (CUT | {"nvidia.com/mig.config": "all-disabled"}, {}),
    ],
)
def test_gpus_that_are_cut_show_instances_instead(labels: dict[str, str], profiles: dict[str, int]) -> None:
    found = gpus(NODE, A4 | labels)
    kinds = Counter(value(device, "profile") for device in found if value(device, "type") == "mig")
    assert kinds == {profile: 8 * count for profile, count in profiles.items()}
    assert len({device["name"] for device in found}) == len(found) == (8 * sum(profiles.values()) or 8)
    parts = [(device, name) for device in found if profiles for name in device["capacity"] if name != "memory"]
    slices = Counter((value(device, "parentUUID"), name) for device, name in parts)
    assert set(slices.values()) <= {1}, "no memory slice is in two instances"


def test_the_driver_waits_for_nvidias_where_its_variable_points() -> None:
    def pod(*roots: str) -> dict[str, Any]:
        env = [{"name": "NVIDIA_DRIVER_ROOT", "value": root} for root in roots]
        return {"metadata": {"name": "plugin", "uid": "1"}, "spec": {"containers": [{"name": "gpus", "env": env}]}}

    right, wrong = pod("/home/kubernetes/bin/nvidia/"), pod("/")
    assert driver_problem(right, A4, installed=True) == driver_problem(pod(), A4, installed=True) == ""
    assert "nvidiaDriverRoot" in driver_problem(wrong, A4, installed=True)
    assert driver_problem(wrong, A4 | {"berth/driver": "preinstalled"}, installed=False) == ""
    assert "does not run on it" in driver_problem(right, A4, installed=False)


def node(uid: str = "uid-1") -> dict[str, Any]:
    return {"metadata": {"name": NODE, "uid": uid}}


def stored(entry: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(entry)
    found["metadata"]["resourceVersion"] = "41"
    return found


def test_a_changed_pool_is_its_next_generation() -> None:
    first = resource_slice(node(), "gpu.nvidia.com", gpus(NODE, A4))
    assert changes([first], []) == ([first], [], [])
    assert changes([first], [stored(first)]) == ([], [], [])
    second = resource_slice(node(), "gpu.nvidia.com", gpus(NODE, A4)[1:])
    new, (changed,), gone = changes([second], [stored(first)])
    assert (new, gone) == ([], [])
    assert changed["spec"]["pool"] == {"name": NODE, "generation": 2, "resourceSliceCount": 1}
    assert changed["metadata"]["resourceVersion"] == "41"
    assert changes([], [stored(first)]) == ([], [], [first["metadata"]["name"]])


def test_slices_of_real_drivers_stay_and_a_new_node_of_an_old_name_gets_a_new_slice() -> None:
    ours = resource_slice(node(), "dra.net", [])
    real = stored(ours)
    real["metadata"]["labels"] = {}
    assert changes([], [real]) == ([], [], [])
    again = resource_slice(node("uid-2"), "dra.net", [])
    assert changes([again], [stored(ours)]) == ([], [], [ours["metadata"]["name"]])
