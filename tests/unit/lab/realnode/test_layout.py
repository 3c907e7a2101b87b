"""Names and addresses of a real node, and the network that it takes."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from berth.lab.errors import LabError
from berth.lab.home import LabHome
from berth.lab.realnode import configuration
from berth.lab.realnode.layout import Layout, tag
from berth.lab.realnode.machine import RealMachine
from berth.lab.realnode.requirements import free_network

NODE = Layout(LabHome(Path("/lab")), IPv4Network("10.199.0.0/16"))


def test_addresses_are_apart_from_each_other() -> None:
    addresses = {NODE.host_address, NODE.node_address, NODE.dns_address}
    assert len(addresses) == 3
    assert not any(address in NODE.pods for address in addresses)
    assert all(address in NODE.network for address in addresses)
    # The pair of interfaces is a network of its own, of two addresses.
    assert IPv4Network(f"{NODE.host_address}/30", strict=False) == IPv4Network(
        f"{NODE.node_address}/30", strict=False
    )


def test_two_labs_have_two_names_that_interfaces_may_have() -> None:
    first = tag(LabHome(Path("/one")))
    second = tag(LabHome(Path("/two")))
    assert first != second
    assert first.startswith("berth-")
    assert len(first) <= 15


def test_a_network_in_use_is_left_alone() -> None:
    first = free_network([])
    assert free_network([IPv4Network(f"{first.network_address + 257}/32")]) != first


def test_where_all_networks_are_in_use_nothing_is_started() -> None:
    with pytest.raises(LabError, match="nothing was changed") as raised:
        free_network([IPv4Network("10.0.0.0/8")])
    assert raised.value.code == 2


def test_the_kubelet_offers_what_gke_leaves_of_the_machine() -> None:
    machine = RealMachine("node", 224, "4Ti", {"cpu": "630m", "memory": "90408960Ki"}, 8)
    texts = configuration.files(NODE, Path("/debian"), Path("/ca.crt"), machine)
    settings = yaml.safe_load(texts[NODE.configuration / "kubelet.yaml"])
    assert settings["kubeReserved"] == {"cpu": "630m", "memory": "90408960Ki"}
    assert settings["cgroupRoot"] == f"/{NODE.tag}"
    assert settings["authentication"]["anonymous"] == {"enabled": False}


def test_the_nodes_programs_reach_the_api_through_the_relay() -> None:
    admin = {
        "clusters": [
            {
                "name": "lab",
                "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "x"},
            }
        ]
    }
    changed = yaml.safe_load(configuration.kubeconfig(admin, "https://10.199.255.253:6443"))
    assert changed["clusters"][0]["cluster"] == {
        "server": "https://10.199.255.253:6443",
        "certificate-authority-data": "x",
        "tls-server-name": "kubernetes",
    }
    assert admin["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"  # type: ignore[index]
