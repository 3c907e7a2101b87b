"""Choice of the real node: simulated GKE creates its object, and the kubelet adopts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.types import parse_quantity
from berth.lab.devices.gpus import gke_devices
from berth.lab.errors import USAGE, LabError
from berth.lab.home import LabHome
from berth.lab.plugins.gcp import nodes, real_node
from berth.lab.plugins.gcp.errors import ProviderError
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.store import Store, StoredRecord


@dataclass(frozen=True)
class RealMachine:
    """Description of the real node.

    Attributes:
        cores, memory: size of its machine type.
        reserved: the part of both that GKE keeps.
        gpus: number that the cloud's own device plugin advertises.
    """

    node: str
    cores: int
    memory: str
    reserved: Mapping[str, str]
    gpus: int


def pool_of(home: LabHome) -> StoredRecord:
    """Return the pool whose first node is real: the one with the label."""
    key, value = real_node.LABEL
    for record in Store(home.cloud).list("nodePools"):
        if (PoolInputs(record.inputs).config.get("labels") or {}).get(
            key
        ) == value and nodes.expected(record):
            return record
    raise LabError(
        f"no node pool of the lab is marked as real: no pool with a node has the label {key}:"
        f" {value}",
        "give one pool that label (`labels` of the pool in stacks/Pulumi.lab.yaml) and a node, then"
        " run it again",
        code=USAGE,
    )


def describe(pool: StoredRecord) -> RealMachine:
    """Return the first node of a pool, by its machine type."""
    name, (zone, number) = next(iter(nodes.expected(pool).items()))
    manifest = nodes.manifest(pool, zone, number, "")
    status = manifest["status"]
    labels = manifest["metadata"]["labels"]
    whole = status["capacity"]
    offered = status["allocatable"]

    def reserved(resource: str) -> Any:
        return parse_quantity(whole[resource]) - parse_quantity(offered[resource])

    return RealMachine(
        node=name,
        cores=int(parse_quantity(whole["cpu"])),
        memory=str(whole["memory"]),
        reserved={
            "cpu": f"{int(reserved('cpu') * 1000)}m",
            "memory": f"{int(reserved('memory')) // 1024}Ki",
        },
        gpus=sum(gke_devices(labels).values()),
    )


def replace(home: LabHome, pool: StoredRecord, node: str, *, real: bool) -> None:
    """Have simulated GKE create a node again, real or simulated; its pods are deleted."""
    marker = real_node.file(home.kubeconfig)
    if real:
        marker.write_text(node)
    else:
        marker.unlink(missing_ok=True)
    fleet = SimulatedFleet(home.kubeconfig)
    try:
        fleet.remove([node])
        fleet.reconcile(pool)
    except ProviderError as error:
        raise LabError(str(error), "run `make lab`, then this again") from None


def joined(home: LabHome) -> str:
    """Return the name of the node that is real now, or ""."""
    return real_node.name(home.kubeconfig)
