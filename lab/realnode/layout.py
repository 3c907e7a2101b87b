"""Where one lab's real node keeps its things, and the addresses it uses. Only names: nothing is read or made here.

Simulates nothing: names and addresses.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from berth.lab.home import Home

API_SERVICE = IPv4Address("10.0.0.1")
"""The `kubernetes` service's address: the first of the API server's default range."""

NICS = tuple(f"gpu{number}rdma0" for number in range(8))
"""The node's stand-in RDMA interfaces, by the names that they have on an A4 machine."""

GATEWAY = "gateway{}"
"""Their far ends in the node: of each NIC's subnet the gateway."""

NAMESPACES = "namespaces.pid"
"""The file with the id of the process that holds the namespaces."""

UPLINK = "uplink"
"""The node's end of the pair of interfaces that joins it to this machine."""


@dataclass(frozen=True)
class Layout:
    """The names of one real node.

    Attributes:
        home: its lab.
        network: a /16 that nothing else on this machine uses.
    """

    home: Home
    network: IPv4Network

    @property
    def folder(self) -> Path:
        """Its folder in the lab's."""
        return folder(self.home)

    @property
    def tag(self) -> str:
        """A short name that no other lab on this machine has, for what lives outside of the lab's folder."""
        return tag(self.home)

    @property
    def link(self) -> str:
        """This machine's end of the pair of interfaces."""
        return self.tag

    @property
    def pods(self) -> IPv4Network:
        """The pods' addresses."""
        return next(self.network.subnets(new_prefix=24))

    @property
    def fabric(self) -> IPv4Network:
        """The addresses of the RDMA NICs' network."""
        return list(self.network.subnets(new_prefix=21))[16]

    @property
    def rails(self) -> tuple[IPv4Network, ...]:
        """Its subnets, one for each NIC."""
        return tuple(self.fabric.subnets(new_prefix=24))

    @property
    def told(self) -> str:
        """This layout as an argument of a program."""
        return json.dumps({"home": str(self.home.root.absolute()), "network": str(self.network)})

    @property
    def host_address(self) -> IPv4Address:
        """This machine's address on the pair."""
        return self.network.broadcast_address - 2

    @property
    def node_address(self) -> IPv4Address:
        """The node's address on the pair."""
        return self.network.broadcast_address - 1

    @property
    def dns_address(self) -> IPv4Address:
        """Where pods ask for names."""
        return self.network.broadcast_address - 53

    @property
    def cgroup(self) -> str:
        """The control group that holds all pods, in every hierarchy."""
        return f"/{self.tag}"

    @property
    def enter(self) -> Path:
        """Runs a program in the node's namespaces."""
        return self.folder / "enter"

    @property
    def namespaces(self) -> Path:
        """The id of the process that holds the namespaces, once they are furnished."""
        return self.folder / NAMESPACES

    @property
    def containerd(self) -> Path:
        """Images and containers."""
        return self.folder / "containerd"

    @property
    def socket(self) -> Path:
        """Where containerd listens; in the node's own /run."""
        return Path("/run/containerd/containerd.sock")

    @property
    def kubelet(self) -> Path:
        """The kubelet's folder."""
        return self.folder / "kubelet"

    @property
    def configuration(self) -> Path:
        """Configuration files of all programs."""
        return self.folder / "etc"

    @property
    def devices(self) -> Path:
        """The descriptions (CDI) of the stand-in devices."""
        return self.folder / "cdi"


def read(told: str) -> Layout:
    """The layout that a program was given as an argument."""
    words = json.loads(told)
    return Layout(Home(Path(words["home"])), IPv4Network(words["network"]))


def folder(home: Home) -> Path:
    """The real node's folder in a lab's."""
    return home.root.absolute() / "real"


def tag(home: Home) -> str:
    """Names one lab among those of this machine, in at most 15 characters: an interface's name has no more."""
    return f"berth-{hashlib.sha256(str(home.root.resolve()).encode()).hexdigest()[:8]}"
