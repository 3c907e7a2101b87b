"""The stand-in RDMA NICs: a subnet for each, and each target its own way out."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path

import pytest

from berth.lab.home import Home
from berth.lab.realnode import layout, nics
from berth.lab.realnode.layout import NICS, Layout

NODE = Layout(Home(Path("/lab")), IPv4Network("10.199.0.0/16"))


def way_out(held: Iterable[int], target: IPv4Address) -> int:
    """The NIC by which a pod that holds some reaches an address: of the rules that DraNet copies for them, the first."""
    tables = {
        line[-1]: number for number in range(len(NICS)) for line in nics.configure(NODE, number) if "table" in line
    }
    rules = [dict(zip(line[2::2], line[3::2], strict=True)) for line in nics.rules(NODE) if line[:2] == ["rule", "add"]]
    fitting = [
        (int(rule["priority"]), tables[rule["lookup"]])
        for rule in rules
        if "to" in rule and target in ip_network(rule["to"]) and tables[rule["lookup"]] in held
    ]
    return min(fitting)[1]


@pytest.mark.parametrize("each", [1, 2, 4])
def test_two_pods_use_as_many_pairs_as_they_have_nics_and_each_in_both_directions(each: int) -> None:
    here, there = range(each), range(each, 2 * each)
    pairs = {(way_out(here, nics.address(NODE, number)), number) for number in there}
    assert {pair[0] for pair in pairs} == set(here)
    assert {(number, way_out(there, nics.address(NODE, number))) for number in here} == pairs


def test_a_nic_has_a_subnet_of_its_own_and_its_gateway_is_the_first_address_there() -> None:
    assert len({nics.address(NODE, number) for number in range(len(NICS))}) == len(NICS) == len(NODE.rails)
    for number, subnet in enumerate(NODE.rails):
        assert nics.gateway(NODE, number) == subnet.network_address + 1
        assert nics.address(NODE, number) in subnet
        assert subnet.subnet_of(NODE.network)
        assert not subnet.overlaps(NODE.pods)
        assert not {NODE.host_address, NODE.node_address, NODE.dns_address} & set(subnet)


def test_what_comes_from_a_nic_goes_to_nics_only() -> None:
    first = nics.rules(NODE)[0]
    assert first[:3] == ["route", "replace", "unreachable"]
    sent_on = [line for number in range(len(NICS)) for line in nics.plug(NODE, number) if line[0] == "route"]
    assert {line[2] for line in sent_on} == {str(subnet) for subnet in NODE.rails}
    assert {line[-1] for line in sent_on} == {first[-1]}


def test_a_nics_hardware_address_is_made_of_its_address_as_google_cloud_does() -> None:
    assert nics.hardware_address(NODE, 0) == "42:01:0a:c7:80:02"


def test_a_program_reads_the_layout_that_it_is_told() -> None:
    assert layout.read(NODE.told) == NODE


def test_two_nics_are_beside_each_other_and_claims_can_ask_for_rdma() -> None:
    told = [nics.attributes(number) for number in range(len(NICS))]
    assert all(each["dra.net/rdma"] == {"bool": True} for each in told)
    roots = [each["resource.kubernetes.io/pcieRoot"]["string"] for each in told]
    assert roots[0::2] == roots[1::2]
    assert len(set(roots)) == len(NICS) // 2
