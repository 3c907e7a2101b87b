"""Devices that the drivers of claims publish of a simulated node."""

import copy
from collections import Counter
from typing import Any

from berth.lab.devices.dra_devices import gpus, is_current, nics, resource_slice, slots
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
    found = {value(device, "dra.net/ifName"): device for device in nics(A4, CARDS)}
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
    assert (value(found["gpu6rdma0"], ROOT), value(found["gpu6rdma0"], "dra.net/numaNode")) == (
        "pci0000:c8",
        1,
    )
    assert nics(A4, []) == nics({}, CARDS[1:]) == [], "a machine shows the cards that it has"


def test_a_gpu_and_the_nic_of_its_number_have_one_root() -> None:
    roots = {value(device, "dra.net/ifName"): value(device, ROOT) for device in nics(A4, CARDS)}
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


def node(uid: str = "uid-1") -> dict[str, Any]:
    return {"metadata": {"name": NODE, "uid": uid}}


def stored(entry: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(entry)
    found["metadata"]["resourceVersion"] = "41"
    return found


def test_a_slice_is_current_with_its_devices_and_its_node() -> None:
    wanted = resource_slice(node(), "gpu.nvidia.com", gpus(NODE, A4))
    assert is_current(wanted, stored(wanted))
    assert not is_current(wanted, None)
    assert not is_current(
        wanted, stored(resource_slice(node(), "gpu.nvidia.com", gpus(NODE, A4)[1:]))
    )
    assert not is_current(
        wanted, stored(resource_slice(node("uid-2"), "gpu.nvidia.com", gpus(NODE, A4)))
    )
