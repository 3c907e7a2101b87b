"""Stand-in RDMA NICs of the node: subnets, the `ip` commands that create them, attributes.

Each NIC is one end of a pair of virtual interfaces, the other end is its subnet's gateway. The
gateways pass packets on between the subnets and to nowhere else, as a VPC network does. MTU and
addresses are as Google Cloud gives them: a subnet for each NIC, and an address without a network of
its own, behind a gateway.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from berth.components.hardware.names import PCIE_ROOT
from berth.lab.devices.dra_devices import slots
from berth.lab.realnode.layout import GATEWAY, NICS, Layout

MTU = 8896
"""Bytes, of the interfaces of VPC networks with a RoCE profile
(https://cloud.google.com/vpc/docs/rdma-network-profiles)."""

_ROUTER_TABLE = 200
_FIRST_TABLE = 300
# The kernel asks rules in this order. A packet that comes from a NIC belongs to the gateways,
# whatever its target.
_ROUTER_RULE = 100
_SOURCE_RULE = 1000
_TARGET_RULE = 2000


def address(layout: Layout, number: int) -> IPv4Address:
    """Return a NIC's own address."""
    return layout.rails[number][2]


def gateway(layout: Layout, number: int) -> IPv4Address:
    """Return the address of a subnet's gateway: the first, as in Google Cloud."""
    return layout.rails[number][1]


def hardware_address(layout: Layout, number: int) -> str:
    """Return a NIC's hardware address, which contains its IPv4 address, as in Google Cloud."""
    return ":".join(f"{byte:02x}" for byte in (0x42, 0x01, *address(layout, number).packed))


def rules(layout: Layout) -> list[str]:
    """Return arguments of `ip` that choose a packet's NIC, and isolate the gateways' traffic.

    A NIC answers with its own address (rules on the source). A packet without a source leaves by
    the NIC that is nearest to its target, a different one for each target as far as there are
    enough: two pods with n NICs each use n pairs. DraNet copies rules with their priorities, but
    neither metrics of routes nor rules on interfaces, so priorities set the order.
    """
    lines = [f"route replace unreachable default table {_ROUTER_TABLE}"]
    for number in range(len(NICS)):
        table = _FIRST_TABLE + number
        lines += [
            f"rule add priority {_ROUTER_RULE} iif {GATEWAY.format(number)} lookup {_ROUTER_TABLE}",
            f"rule add priority {_SOURCE_RULE} from {address(layout, number)} lookup {table}",
        ]
        for other, subnet in enumerate(layout.rails):
            lines.append(
                f"rule add priority {_TARGET_RULE + (number ^ other)} to {subnet} lookup {table}"
            )
    return lines


def plug(layout: Layout, number: int) -> list[str]:
    """Return arguments of `ip` that create a NIC and its gateway."""
    nic = NICS[number]
    port = GATEWAY.format(number)
    subnet = layout.rails[number]
    hardware = hardware_address(layout, number)
    return [
        f"link add {nic} address {hardware} mtu {MTU} type veth peer name {port} mtu {MTU}",
        f"address add {gateway(layout, number)}/{subnet.prefixlen} dev {port} noprefixroute",
        f"link set {port} up",
        f"route replace {subnet} dev {port} table {_ROUTER_TABLE}",
    ]


def configure(layout: Layout, number: int) -> list[str]:
    """Return arguments of `ip` that give a NIC on the node its address and routes."""
    nic = NICS[number]
    via = gateway(layout, number)
    table = _FIRST_TABLE + number
    return [
        f"link set {nic} up",
        f"route replace {via} dev {nic} scope link table {table}",
        f"route replace {layout.fabric} via {via} dev {nic} table {table}",
        # Last: a reader that finds the address finds all of it.
        f"address replace {address(layout, number)}/32 dev {nic}",
    ]


def attributes(number: int) -> Mapping[str, Mapping[str, Any]]:
    """Return attributes of an A4 machine's RDMA NIC that a virtual interface lacks."""
    slot = slots(len(NICS))[number]
    return {
        "dra.net/rdma": {"bool": True},
        "dra.net/numaNode": {"int": slot.numa},
        PCIE_ROOT: {"string": slot.root},
    }
