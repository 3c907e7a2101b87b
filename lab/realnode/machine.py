"""Which of the lab's nodes is real, and its place in the lab: simulated GKE makes its object, the kubelet adopts it.

Simulates nothing: it chooses the node that becomes real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.components.core.types import parse_quantity
from berth.lab.devices.gpus import gke_devices
from berth.lab.errors import USAGE, LabError
from berth.lab.plugins.gcp import nodes, real_node
from berth.lab.plugins.gcp.fleet import Fleet
from berth.lab.plugins.gcp.pools import Pool
from berth.lab.plugins.gcp.store import Record, Store
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berth.lab.home import Home


@dataclass(frozen=True)
class Machine:
    """What the real node is to be.

    Attributes:
        node: its name.
        cores: of its machine type.
        memory: of its machine type, as a quantity.
        reserved: what GKE keeps of them.
        gpus: how many the cloud's own device plugin advertises.
    """

    node: str
    cores: int
    memory: str
    reserved: Mapping[str, str]
    gpus: int


def pool_of(home: Home) -> Record:
    """The pool whose first node is real: the one that says so by its label.

    Raises:
        LabError: there is none, or it has no node.
    """
    key, value = real_node.LABEL
    for record in Store(home.cloud).list("nodePools"):
        if (Pool(record.inputs).config.get("labels") or {}).get(key) == value and nodes.expected(record):
            return record
    raise LabError(
        f"no node pool of the lab says that it is real: none with a node has the label {key}: {value}",
        "give one that label in stacks/Pulumi.lab.yaml (labels: under the pool) and at least one node, then run it again",
        code=USAGE,
    )


def describe(pool: Record) -> Machine:
    """The first node of a pool, as its machine type has it."""
    name, (zone, number) = next(iter(nodes.expected(pool).items()))
    manifest = nodes.manifest(pool, zone, number, "")
    status, labels = manifest["status"], manifest["metadata"]["labels"]
    whole, offered = status["capacity"], status["allocatable"]

    def kept(resource: str) -> Any:
        return parse_quantity(whole[resource]) - parse_quantity(offered[resource])

    return Machine(
        node=name,
        cores=int(parse_quantity(whole["cpu"])),
        memory=str(whole["memory"]),
        reserved={"cpu": f"{int(kept('cpu') * 1000)}m", "memory": f"{int(kept('memory')) // 1024}Ki"},
        gpus=sum(gke_devices(labels).values()),
    )


def replace(home: Home, pool: Record, node: str, *, real: bool) -> None:
    """Have simulated GKE make one node anew, as a real or as a simulated one; pods on it go.

    Raises:
        LabError: the API server does not answer.
    """
    marker = real_node.file(home.kubeconfig)
    if real:
        marker.write_text(node)
    else:
        marker.unlink(missing_ok=True)
    fleet = Fleet(home.kubeconfig)
    try:
        fleet.remove([node])
        fleet.reconcile(pool)
    except ProviderError as error:
        raise LabError(str(error), "run `make lab`, then this again") from None


def joined(home: Home) -> str:
    """The name of the node that is real now, or nothing."""
    return real_node.name(home.kubeconfig)
