"""Paths and addresses of one lab's real node. Nothing is read or created here."""

import hashlib
import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from berth.lab.home import Inside, LabHome

NICS = tuple(f"gpu{number}rdma0" for number in range(8))
"""Stand-in RDMA interfaces of the node, by the names that they have on an A4 machine."""

GATEWAY = "gateway{}"
"""Far ends of the NICs in the node: the gateway of each NIC's subnet."""

NAMESPACES = "namespaces.pid"
"""File with the id of the process that holds the namespaces."""

UPLINK = "uplink"
"""Node's end of the pair of interfaces that joins it to this machine."""


@dataclass(frozen=True)
class Layout:
    """Names of one real node.

    Attributes:
        network: a /16 that nothing else on this machine uses.
        enter: script that runs a program in the node's namespaces.
        namespaces: id of the process that holds the namespaces, once they are furnished.
        socket: socket of containerd, in the node's own /run.
        devices: descriptions (CDI) of the stand-in devices.
    """

    home: LabHome
    network: IPv4Network

    enter = Inside("enter")
    namespaces = Inside(NAMESPACES)
    containerd = Inside("containerd")
    kubelet = Inside("kubelet")
    configuration = Inside("etc")
    devices = Inside("cdi")
    socket = Path("/run/containerd/containerd.sock")

    @property
    def folder(self) -> Path:
        """Folder of the node in the lab's."""
        return folder(self.home)

    @property
    def tag(self) -> str:
        """Short name, unique on this machine, for what lives outside of the lab's folder."""
        return tag(self.home)

    @property
    def pods(self) -> IPv4Network:
        """Addresses of the pods."""
        return next(self.network.subnets(new_prefix=24))

    @property
    def fabric(self) -> IPv4Network:
        """Addresses of the RDMA NICs' network."""
        return list(self.network.subnets(new_prefix=21))[16]

    @property
    def rails(self) -> tuple[IPv4Network, ...]:
        """Subnets of that network, one for each NIC."""
        return tuple(self.fabric.subnets(new_prefix=24))

    @property
    def argument(self) -> str:
        """Text of this layout as a program's argument."""
        return json.dumps({"home": str(self.home.root.absolute()), "network": str(self.network)})

    @property
    def host_address(self) -> IPv4Address:
        """Address of this machine on the pair."""
        return self.network.broadcast_address - 2

    @property
    def node_address(self) -> IPv4Address:
        """Address of the node on the pair."""
        return self.network.broadcast_address - 1

    @property
    def dns_address(self) -> IPv4Address:
        """Address of the pods' name server."""
        return self.network.broadcast_address - 53


def read(argument: str) -> Layout:
    """Return the layout that a program got as an argument."""
    words = json.loads(argument)
    return Layout(LabHome(Path(words["home"])), IPv4Network(words["network"]))


def folder(home: LabHome) -> Path:
    """Return the real node's folder in a lab's."""
    return home.root.absolute() / "real"


def tag(home: LabHome) -> str:
    """Return a lab's unique name in at most 15 characters, the limit of an interface's name."""
    return f"berth-{hashlib.sha256(str(home.root.resolve()).encode()).hexdigest()[:8]}"
