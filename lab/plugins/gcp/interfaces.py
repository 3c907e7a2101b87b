"""Further network cards of a pool's machines, as its networks describe them."""

import re
from dataclasses import dataclass

from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.resource import last_part, number_of
from berth.lab.plugins.gcp.store import Store, StoredRecord

# Name of an RDMA network's profile.
_PROFILE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z]-vpc-(roce|falcon|roce-metal)")

# "RDMA network profiles" of Google's VPC pages, and the default of other networks.
_RDMA_MTU = 8896
_MTU = 1460


@dataclass(frozen=True)
class Interface:
    """Network card beside the primary one."""

    network: str
    project: int
    """The number of the network's project."""
    mtu: int
    rdma: bool
    """Whether the interface is one of the cards that are for the GPUs."""


def interfaces(store: Store, pool: StoredRecord) -> list[Interface]:
    """The further cards of each node of a pool, in the order of its networks.

    With an accelerator network profile GKE makes the networks itself: one for a second gVNIC and
    one with a card for each GPU, as in Google's recipe for explicit networks. What it calls them no
    page says; the names are the lab's.
    """
    read = PoolInputs(pool.inputs)
    if read.network_profile:
        project = int(number_of(pool.project))
        prefix = f"gke-{pool.id.split('/')[5]}-{pool.name}"
        nics = read.machine.series.gpu_nics
        return [
            Interface(f"{prefix}-gvnic", project, _MTU, rdma=False),
            *[Interface(f"{prefix}-rdma", project, _RDMA_MTU, rdma=True)] * nics,
        ]
    found = []
    for extra in (pool.inputs.get("networkConfig") or {}).get("additionalNodeNetworkConfigs") or []:
        # The project in a path or self link; that of a Shared VPC may be another one.
        path = re.search(r"projects/([^/]+)/", str(extra.get("network")))
        owner = path[1] if path else pool.project
        network = store.get(f"projects/{owner}/global/networks/{last_part(extra.get('network'))}")
        if network is not None:
            rdma = (
                _PROFILE.fullmatch(last_part(network.inputs.get("networkProfile") or ""))
                is not None
            )
            mtu = int(network.inputs.get("mtu") or (_RDMA_MTU if rdma else _MTU))
            found.append(Interface(network.name, int(number_of(owner)), mtu, rdma))
    return found
