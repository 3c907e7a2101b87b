"""The stand-in RDMA NICs: a subnet for each, and each target its own way out."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path

import pytest

from berth.lab.home import LabHome
from berth.lab.realnode import layout, nics
from berth.lab.realnode.layout import NICS, Layout

NODE = Layout(LabHome(Path("/lab")), IPv4Network("10.199.0.0/16"))


def way_out(nics_of_pod: Iterable[int], target: IPv4Address) -> int:
    """The NIC by which a pod that holds some reaches an address: of the rules that DraNet copies
    for them, the first.
    """
    lines = [
        (number, line.split())
        for number in range(len(NICS))
        for line in nics.configure(NODE, number)
    ]
    tables = {words[-1]: number for number, words in lines if "table" in words}
    added = [line.split()[2:] for line in nics.rules(NODE) if line.startswith("rule add ")]
    rules = [dict(zip(words[::2], words[1::2], strict=True)) for words in added]
    fitting = [
        (int(rule["priority"]), tables[rule["lookup"]])
        for rule in rules
        if "to" in rule
        and target in ip_network(rule["to"])
        and tables[rule["lookup"]] in nics_of_pod
    ]
    return min(fitting)[1]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_two_pods_use_as_many_pairs_as_they_have_nics_in_both_directions(count: int) -> None:
    here = range(count)
    there = range(count, 2 * count)
    pairs = {(way_out(here, nics.address(NODE, number)), number) for number in there}
    assert {pair[0] for pair in pairs} == set(here)
    assert {(number, way_out(there, nics.address(NODE, number))) for number in here} == pairs


def test_a_nic_has_a_subnet_of_its_own_and_its_gateway_is_the_first_address_there() -> None:
    assert (
        len({nics.address(NODE, number) for number in range(len(NICS))})
        == len(NICS)
        == len(NODE.rails)
    )
    for number, subnet in enumerate(NODE.rails):
        assert nics.gateway(NODE, number) == subnet.network_address + 1
        assert nics.address(NODE, number) in subnet
        assert subnet.subnet_of(NODE.network)
        assert not subnet.overlaps(NODE.pods)
        assert not {NODE.host_address, NODE.node_address, NODE.dns_address} & set(subnet)


def test_what_comes_from_a_nic_goes_to_nics_only() -> None:
    first = nics.rules(NODE)[0].split()
    assert first[:3] == ["route", "replace", "unreachable"]
    plugs = [line.split() for number in range(len(NICS)) for line in nics.plug(NODE, number)]
    routes = [words for words in plugs if words[0] == "route"]
    assert {words[2] for words in routes} == {str(subnet) for subnet in NODE.rails}
    assert {words[-1] for words in routes} == {first[-1]}


def test_a_nics_hardware_address_is_made_of_its_address_as_google_cloud_does() -> None:
    assert nics.hardware_address(NODE, 0) == "42:01:0a:c7:80:02"


def test_a_program_reads_the_layout_of_its_argument() -> None:
    assert layout.read(NODE.argument) == NODE


def test_two_nics_are_beside_each_other_and_claims_can_ask_for_rdma() -> None:
    attributes = [nics.attributes(number) for number in range(len(NICS))]
    assert all(nic["dra.net/rdma"] == {"bool": True} for nic in attributes)
    roots = [nic["resource.kubernetes.io/pcieRoot"]["string"] for nic in attributes]
    assert roots[0::2] == roots[1::2]
    assert len(set(roots)) == len(NICS) // 2
