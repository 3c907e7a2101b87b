"""The node's stand-in RDMA NICs: their subnets, what makes and addresses them, and what is told of them. Pure functions.

Each is a pair of virtual interfaces. One end is the NIC, the other one its subnet's gateway; the gateways pass packets on
between the subnets and to nowhere else, as a VPC network does. MTU and addresses are as Google Cloud gives them: a subnet
for each NIC, and an address without a network of its own, behind a gateway.

Answers to (read): "RDMA network profiles" for the MTU, and "Subnets" for addresses behind a gateway:
    https://docs.cloud.google.com/vpc/docs/rdma-network-profiles
Answers to (believed): a pair of virtual interfaces is to DraNet and to pods what an RDMA NIC is, but for RDMA itself,
    which it has not. An A4 node would settle it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berth.components.hardware.names import PCIE_ROOT
from berth.lab.devices.dra_devices import slots
from berth.lab.realnode.layout import GATEWAY, NICS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ipaddress import IPv4Address

    from berth.lab.realnode.layout import Layout

MTU = 8896
"""Bytes: of the interfaces of VPC networks with a RoCE profile
(https://cloud.google.com/vpc/docs/rdma-network-profiles)."""

_ROUTER_TABLE = 200
_FIRST_TABLE = 300
# Rules are asked in this order. A packet that comes from a NIC belongs to the gateways, whichever address it is for.
_ROUTER_RULE, _SOURCE_RULE, _TARGET_RULE = 100, 1000, 2000

Command = list[str]


def address(layout: Layout, number: int) -> IPv4Address:
    """A NIC's own address."""
    return layout.rails[number][2]


def gateway(layout: Layout, number: int) -> IPv4Address:
    """The address of a subnet's gateway: its first, as Google Cloud has it."""
    return layout.rails[number][1]


def hardware_address(layout: Layout, number: int) -> str:
    """Made of the address, as Google Cloud does."""
    return ":".join(f"{byte:02x}" for byte in (0x42, 0x01, *address(layout, number).packed))


def rules(layout: Layout) -> list[Command]:
    """What decides by which NIC a packet goes, and keeps the gateways' traffic to themselves. Arguments of `ip`.

    A NIC answers by itself (rules on the source). Who only names a target leaves by the NIC that is nearest to it, which is
    a different one for each target as far as there are enough: two pods with n NICs each use n pairs. DraNet copies rules
    with their priorities, but neither metrics of routes nor rules on interfaces, so the order is in the priorities.
    """
    found = [["route", "replace", "unreachable", "default", "table", f"{_ROUTER_TABLE}"]]
    for number in range(len(NICS)):
        port = GATEWAY.format(number)
        found.append(["rule", "add", "priority", f"{_ROUTER_RULE}", "iif", port, "lookup", f"{_ROUTER_TABLE}"])
        own = ["from", str(address(layout, number)), "lookup", f"{_FIRST_TABLE + number}"]
        found.append(["rule", "add", "priority", f"{_SOURCE_RULE}", *own])
        for other, subnet in enumerate(layout.rails):
            priority = _TARGET_RULE + (number ^ other)
            target = ["to", str(subnet), "lookup", f"{_FIRST_TABLE + number}"]
            found.append(["rule", "add", "priority", f"{priority}", *target])
    return found


def plug(layout: Layout, number: int) -> list[Command]:
    """What makes a NIC and its gateway. Arguments of `ip`."""
    nic, port = NICS[number], GATEWAY.format(number)
    subnet = layout.rails[number]
    here = f"{gateway(layout, number)}/{subnet.prefixlen}"
    mtu = ["mtu", f"{MTU}"]
    return [
        [
            "link",
            "add",
            nic,
            "address",
            hardware_address(layout, number),
            *mtu,
            "type",
            "veth",
            "peer",
            "name",
            port,
            *mtu,
        ],
        ["address", "add", here, "dev", port, "noprefixroute"],
        ["link", "set", port, "up"],
        ["route", "replace", str(subnet), "dev", port, "table", f"{_ROUTER_TABLE}"],
    ]


def configure(layout: Layout, number: int) -> list[Command]:
    """What gives a NIC on the node its address and routes. Arguments of `ip`."""
    nic, via = NICS[number], str(gateway(layout, number))
    table = ["table", f"{_FIRST_TABLE + number}"]
    return [
        ["link", "set", nic, "up"],
        ["route", "replace", via, "dev", nic, "scope", "link", *table],
        ["route", "replace", str(layout.fabric), "via", via, "dev", nic, *table],
        # Last: who finds the address finds all of it.
        ["address", "replace", f"{address(layout, number)}/32", "dev", nic],
    ]


def attributes(number: int) -> Mapping[str, Mapping[str, Any]]:
    """What an RDMA NIC of an A4 machine says of itself, and a virtual interface can't: DraNet publishes it with the rest."""
    slot = slots(len(NICS))[number]
    return {
        "dra.net/rdma": {"bool": True},
        "dra.net/numaNode": {"int": slot.numa},
        PCIE_ROOT: {"string": slot.root},
    }
