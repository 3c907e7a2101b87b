"""What DraNet publishes of a node's network cards.

Names and types: sigs.k8s.io/dranet v1.4.0, `pkg/inventory/db.go` and `pkg/cloudprovider/gce/gce.go`. A card with a network
interface has no `dra.net/rdmaDevice` there: only cards without one do. Left out: addresses, and the interfaces of other pods'
networks, which DraNet publishes as well where no filter keeps them out.

Answers to (read): sigs.k8s.io/dranet v1.4.0, pkg/inventory/db.go, pkg/apis/attributes.go and
    pkg/cloudprovider/gce/gce.go: https://github.com/kubernetes-sigs/dranet/blob/v1.4.0/pkg/inventory/db.go
Answers to (believed): A4's NICs show as ConnectX-7 cards, and all hosts of an instance group are in one block. An A4
    node's ResourceSlice would settle both.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from berth.components.hardware.names import MANAGED_DRANET_LABEL
from berth.lab.devices import topology
from berth.lab.devices.gke_device_plugin import gpus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berth.lab.plugins.gcp.interfaces import Interface

DRIVER = "dra.net"
DAEMONSET = ("k8s-app", "dranet")
"""Label of the pods of DraNet's DaemonSet, in its chart and its manifest alike."""

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"

_MACHINE = "node.kubernetes.io/instance-type"
# Vendor and product as the PCI ID database has them. That A4's cards show as ConnectX-7 follows from "Accelerator-optimized
# machine family"; whether as the card or as a function of it, no page says.
_CARDS = {
    True: ("Mellanox Technologies", "MT2910 Family [ConnectX-7]"),
    False: ("Google, Inc.", "Compute Engine Virtual Ethernet [gVNIC]"),
}


def managed(labels: Mapping[str, str]) -> bool:
    """Whether GKE runs DraNet on a node; the lab leaves its DaemonSet out."""
    return labels.get(MANAGED_DRANET_LABEL) == "true"


def devices(name: str, labels: Mapping[str, str], cards: Sequence[Interface]) -> list[dict[str, Any]]:
    """The devices of one node, as they stand in its ResourceSlice.

    Args:
        name: the node's.
        labels: the node's.
        cards: its network cards, without the primary one, which DraNet leaves out.
    """
    places = iter(topology.slots(gpus(labels)))
    found, rdma, others = [], 0, 0
    for card in cards:
        if card.rdma:
            slot = next(places, None)
            if slot is None:
                break
            found.append(_device(name, labels, card, f"gpu{rdma}rdma0", (slot.nic, slot.root, slot.numa)))
            rdma += 1
        else:
            others += 1
            address, root = topology.GVNIC
            found.append(_device(name, labels, card, f"eth{others}", (address, root, 1)))
    return sorted(found, key=lambda device: str(device["name"]))


def _device(
    node: str, labels: Mapping[str, str], card: Interface, interface: str, place: tuple[str, str, int]
) -> dict[str, Any]:
    address, root, numa = place
    vendor, product = _CARDS[card.rdma]
    block, sub_block, host = _host(node)
    attributes = {
        "dra.net/alias": {"string": ""},
        "dra.net/ebpf": {"bool": False},
        "dra.net/encapsulation": {"string": "ether"},
        "dra.net/ifName": {"string": interface},
        "dra.net/mac": {"string": _mac(node, interface)},
        "dra.net/mtu": {"int": card.mtu},
        "dra.net/numaNode": {"int": numa},
        "dra.net/pciAddress": {"string": address},
        "dra.net/pciDevice": {"string": product},
        "dra.net/pciVendor": {"string": vendor},
        "dra.net/rdma": {"bool": card.rdma},
        "dra.net/sriov": {"bool": False},
        "dra.net/state": {"string": "up"},
        "dra.net/type": {"string": "device"},
        "dra.net/virtual": {"bool": False},
        "gce.dra.net/block": {"string": block},
        "gce.dra.net/host": {"string": host},
        "gce.dra.net/machineType": {"string": labels.get(_MACHINE, "")},
        "gce.dra.net/networkName": {"string": card.network},
        "gce.dra.net/networkProjectNumber": {"int": card.project},
        "gce.dra.net/subBlock": {"string": sub_block},
        PCIE_ROOT: {"string": root},
    }
    return {"name": f"pci-{address.replace(':', '-').replace('.', '-')}", "attributes": attributes}


def _host(node: str) -> tuple[str, str, str]:
    """Where the machine stands: nodes of one instance group share a block and its part, as if placed close together."""
    group = node.rsplit("-", 1)[0]
    return _digest(f"block of {group}"), _digest(f"part of {group}"), _digest(f"host of {node}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _mac(node: str, interface: str) -> str:
    digest = hashlib.sha256(f"{node}/{interface}".encode()).hexdigest()
    return ":".join(["42", "01", *(digest[at : at + 2] for at in range(0, 8, 2))])
